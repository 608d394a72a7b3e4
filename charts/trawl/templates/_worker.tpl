{{- /* What src/runners/kubernetes/pod-shape.ts reads from the settings of the controller. */ -}}
{{- define "trawl.workerShape" -}}
{{- $values := .Values.workers -}}
{{- $image := include "trawl.image" (dict "root" . "image" "worker") -}}
{{- /* Zeros at the beginning would make an octal number. */ -}}
{{- $bytes := regexReplaceAll "^0+" (include "trawl.setting" (dict "root" . "name" "TRAWL_MAX_FILE_BYTES")) "" | int64 -}}
{{- $seconds := regexReplaceAll "^0+" (include "trawl.setting" (dict "root" . "name" "TRAWL_JOB_SECONDS")) "" | int64 -}}
images: {{ prepend ($values.extraImages | default list) $image | toRawJson }}
account: trawl-worker
gateway: {{ include "trawl.gatewayAddress" . | toRawJson }}
egress: {{ include "trawl.egressAddress" . | toRawJson }}
logLevel: {{ include "trawl.setting" (dict "root" . "name" "TRAWL_LOG_LEVEL") | toRawJson }}
plugins: {{ regexReplaceAll "\\s*:\\s*" (include "trawl.setting" (dict "root" . "name" "TRAWL_YTDLP_PLUGINS") | trim) ":" | toRawJson }}
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
nodeSelector: {{ $values.nodeSelector | toRawJson }}
affinity: {{ $values.affinity | toRawJson }}
tolerations: {{ $values.tolerations | toRawJson }}
dnsPolicy: {{ $values.dnsPolicy | toRawJson }}
dnsConfig: {{ $values.dnsConfig | default (dict "options" (list (dict "name" "ndots" "value" "1"))) | toRawJson }}
caConfigMap: {{ include "trawl.caConfigMap" . | toRawJson }}
hostUsers: {{ $values.hostUsers }}
clusterUser: {{ include "trawl.adaptsUser" . | default "false" }}
marks: {{ $values.extraMarks | toRawJson }}
resources: {{ $values.extraResources | default list | toRawJson }}
pullSecrets: {{ .Values.imagePullSecrets | toRawJson }}
{{- end }}

{{- /* Any value as CEL; members of one list or map may differ in their type only when they are dynamic. */ -}}
{{- define "trawl.cel" -}}
{{- if kindIs "map" . -}}
{ {{- range $n, $key := keys . | sortAlpha }}{{ if $n }}, {{ end }}{{ $key | toRawJson }}: dyn({{ include "trawl.cel" (index $ $key) }}){{ end -}} }
{{- else if kindIs "slice" . -}}
[{{ range $n, $one := . }}{{ if $n }}, {{ end }}dyn({{ include "trawl.cel" $one }}){{ end }}]
{{- else -}}
{{ toRawJson . }}
{{- end }}
{{- end }}

{{- /* CEL that compares the resources of a worker with others; the API server writes quantities in another form (3000000000 is 3G). */ -}}
{{- define "trawl.areResources" -}}
variables.worker.resources.size() == {{ len . }}
{{- range $part, $amounts := . }}
{{- $path := printf "variables.worker.resources[%s]" ($part | toRawJson) }} && {{ $part | toRawJson }} in variables.worker.resources && {{ $path }}.size() == {{ len $amounts }}
{{- range $name, $amount := $amounts }}
{{- $text := $amount | toRawJson }} && {{ $name | toRawJson }} in {{ $path }} && {{ if has $name (list "cpu" "memory" "ephemeral-storage") }}quantity({{ $path }}[{{ $name | toRawJson }}]).compareTo(quantity({{ $text }})) == 0{{ else }}{{ $path }}[{{ $name | toRawJson }}] == {{ $text }}{{ end }}
{{- end }}
{{- end }}
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
        matchLabels: {kubernetes.io/metadata.name: {{ .root.Release.Namespace | quote }}}
      podSelector:
        matchLabels:
          app.kubernetes.io/name: trawl
          app.kubernetes.io/component: {{ .component }}
  ports:
    - {protocol: TCP, port: {{ .port }}}
{{- end }}

{{- /* What TRAWL_WORKER_PLACEMENT says of these values; what is empty is left out. */ -}}
{{- define "trawl.placementOfWorkers" -}}
{{- $placement := dict "dnsPolicy" .dnsPolicy -}}
{{- range $name := list "nodeSelector" "tolerations" "affinity" "dnsConfig" -}}
{{- with index $ $name }}{{ $_ := set $placement $name . }}{{ end -}}
{{- end -}}
{{ $placement | toRawJson }}
{{- end }}
