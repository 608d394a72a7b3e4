{{- /* What src/runners/kubernetes/pod-shape.ts reads from the settings of the controller. */ -}}
{{- define "trawl.workerShape" -}}
{{- $values := .Values.workers -}}
{{- $image := include "trawl.image" (dict "root" . "image" "worker") -}}
{{- $bytes := include "trawl.setting" (dict "root" . "name" "TRAWL_MAX_FILE_BYTES") | int64 -}}
{{- $seconds := include "trawl.setting" (dict "root" . "name" "TRAWL_JOB_SECONDS") | int64 -}}
images: {{ prepend $values.extraImages $image | toRawJson }}
account: trawl-worker
gateway: {{ include "trawl.gatewayAddress" . | toRawJson }}
egress: {{ include "trawl.egressAddress" . | toRawJson }}
logLevel: {{ include "trawl.setting" (dict "root" . "name" "TRAWL_LOG_LEVEL") | toRawJson }}
plugins: {{ include "trawl.setting" (dict "root" . "name" "TRAWL_YTDLP_PLUGINS") | toRawJson }}
network: {{ $values.policiesEnforced | ternary "policies-enforced" "" | toRawJson }}
cpu: {{ $values.cpu | toRawJson }}
memory: {{ $values.memory | toRawJson }}
# The source, the parts it is made from and the result lie side by side.
diskBytes: {{ add (mul 3 $bytes) 268435456 | quote }}
# An attempt may be given the length of the longest live stream besides.
maxSeconds: {{ add $seconds 86400 | quote }}
awaySeconds: {{ $values.awaySeconds | int64 | quote }}
runtimeClass: {{ $values.runtimeClass | toRawJson }}
priorityClass: {{ $values.priorityClass | toRawJson }}
queue: {{ $values.queue | toRawJson }}
caConfigMap: {{ include "trawl.caConfigMap" . | toRawJson }}
hostUsers: {{ $values.hostUsers }}
marks: {{ $values.extraMarks | toRawJson }}
pullSecrets: {{ .Values.imagePullSecrets | toRawJson }}
{{- end }}

{{- /* Texts as members of a list of CEL. */ -}}
{{- define "trawl.dyns" -}}
{{- range $index, $text := . }}{{ if $index }}, {{ end }}dyn({{ $text | toRawJson }}){{ end }}
{{- end }}

{{- define "trawl.dynNames" -}}
{{- range $index, $one := . }}{{ if $index }}, {{ end }}dyn({"name": dyn({{ $one.name | toRawJson }})}){{ end }}
{{- end }}

{{- /* A way of workers to pods beside the controller; two installations never share a namespace. */ -}}
{{- define "trawl.workersTo" -}}
- to:
    - namespaceSelector:
        matchLabels: {kubernetes.io/metadata.name: {{ .root.Release.Namespace }}}
      podSelector:
        matchLabels:
          app.kubernetes.io/name: trawl
          app.kubernetes.io/component: {{ .component }}
  ports:
    - {protocol: TCP, port: {{ .port }}}
{{- end }}
