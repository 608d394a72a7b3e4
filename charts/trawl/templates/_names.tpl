{{- /* Names start with that of the release; 40 letters of it leave room for what Kubernetes appends. */ -}}
{{- define "trawl.name" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- /* Labels of an object: ours, then commonLabels, then those of the object itself (moreLabels). Each name stands once, as kustomize and post-renderers want it. */ -}}
{{- define "trawl.labels" -}}
{{- $labels := fromYaml (include "trawl.selector" .) -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") -}}
{{- $_ := set $labels "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $labels "app.kubernetes.io/part-of" "trawl" -}}
{{- range list .root.Values.commonLabels .moreLabels -}}
{{- range $name, $value := . }}{{ $_ := set $labels $name $value }}{{ end -}}
{{- end -}}
{{ include "trawl.texts" $labels }}
{{- end }}

{{- define "trawl.selector" -}}
app.kubernetes.io/name: trawl
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{- /* Name, namespace and labels of an object: root, component, and optionally name, namespace and moreLabels. */ -}}
{{- define "trawl.metadata" -}}
name: {{ .name | default (printf "%s-%s" (include "trawl.name" .root) .component) | quote }}
namespace: {{ .namespace | default .root.Release.Namespace | quote }}
labels:
  {{- include "trawl.labels" . | nindent 2 }}
{{- end }}

{{- /* Labels, annotations and selectors are texts, also where `--set` or YAML make a number or true of one. A name with nothing behind it is left out. */ -}}
{{- define "trawl.texts" -}}
{{- $texts := dict -}}
{{- range $name, $value := . }}{{ if not (kindIs "invalid" $value) }}{{ $_ := set $texts $name (kindIs "float64" $value | ternary (toRawJson $value) (toString $value)) }}{{ end }}{{ end -}}
{{ toYaml $texts }}
{{- end }}

{{- define "trawl.image" -}}
{{- $image := index .root.Values.images .image -}}
{{- with .root.Values.images.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .root.Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "trawl.workersNamespace" -}}
{{ .Values.workers.namespace | default (printf "%s-workers" .Release.Namespace) }}
{{- end }}

{{- define "trawl.generatedSecret" -}}
{{ include "trawl.name" . }}-generated
{{- end }}

{{- /* How gateway, inspector and egress are spoken to. */ -}}
{{- define "trawl.scheme" -}}
{{ .Values.tls.enabled | ternary "https" "http" }}
{{- end }}

{{- /* The ConfigMap with the authorities of TLS, which is in both namespaces; nothing when the public ones are trusted. */ -}}
{{- define "trawl.caConfigMap" -}}
{{- if .Values.tls.enabled }}{{ if .Values.tls.ca }}{{ include "trawl.name" . }}-authorities{{ else }}{{ .Values.tls.caConfigMap }}{{ end }}{{ end }}
{{- end }}

{{- define "trawl.gatewayAddress" -}}
{{ include "trawl.scheme" . }}://{{ include "trawl.name" . }}-gateway.{{ .Release.Namespace }}.svc:8082
{{- end }}

{{- define "trawl.egressAddress" -}}
{{ include "trawl.scheme" . }}://{{ include "trawl.name" . }}-egress.{{ .Release.Namespace }}.svc:4750
{{- end }}

{{- define "trawl.inspectorAddress" -}}
{{ include "trawl.scheme" . }}://{{ include "trawl.name" . }}-inspector.{{ .Release.Namespace }}.svc:8083
{{- end }}

{{- define "trawl.s3Endpoint" -}}
{{- if .Values.s3.bundled.enabled -}}
http://{{ include "trawl.name" . }}-s3.{{ .Release.Namespace }}.svc:7070
{{- else -}}
{{ .Values.s3.endpoint }}
{{- end }}
{{- end }}

{{- /* The value of a setting: that of `settings`, else the default of the program. */ -}}
{{- define "trawl.setting" -}}
{{- $defaults := fromYaml (include "trawl.settingDefaults" .root) -}}
{{ index (.root.Values.settings | default dict) .name | default (index $defaults .name) | default "" }}
{{- end }}
