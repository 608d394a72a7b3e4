{{- /* Peers of network policies. A policy sees the pod behind a Service, so ports are those of pods. */ -}}
{{- define "trawl.toComponent" -}}
- to:
    - podSelector:
        matchLabels:
          {{- include "trawl.selector" . | nindent 10 }}
  ports:
    - {protocol: TCP, port: {{ .port }}}
{{- end }}

{{- define "trawl.toAddresses" -}}
{{- range .addresses }}
- to:
    - ipBlock: {cidr: {{ .cidr | quote }}}
  ports:
    - {protocol: TCP, port: {{ .port }}}
{{- end }}
{{- end }}

{{- define "trawl.toDns" -}}
- to:
    {{- with .Values.networkPolicy.dns.to }}
    {{- toYaml . | nindent 4 }}
    {{- else }}
    - namespaceSelector:
        matchLabels: {kubernetes.io/metadata.name: kube-system}
      podSelector:
        matchLabels: {k8s-app: kube-dns}
    {{- end }}
  ports:
    {{- range .Values.networkPolicy.dns.ports }}
    - {protocol: UDP, port: {{ . }}}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end }}

{{- define "trawl.toRedis" -}}
{{- if .Values.redis.bundled.enabled }}
{{- include "trawl.toComponent" (dict "root" . "component" "redis" "port" 6379) }}
{{- else }}
{{- include "trawl.toAddresses" (dict "addresses" .Values.networkPolicy.redis) | trim }}
{{- end }}
{{- end }}

{{- define "trawl.toS3" -}}
{{- if .Values.s3.bundled.enabled }}
{{- include "trawl.toComponent" (dict "root" . "component" "s3" "port" 7070) }}
{{- else }}
{{- include "trawl.toAddresses" (dict "addresses" .Values.networkPolicy.s3) | trim }}
{{- end }}
{{- end }}

{{- /* Everything may read the probe port that Prometheus reads. */ -}}
{{- define "trawl.fromMetrics" -}}
- from:
  {{- with .Values.networkPolicy.metricsFrom }}
    {{- toYaml . | nindent 4 }}
  {{- else }}
    - namespaceSelector: {}
  {{- end }}
  ports:
    - {protocol: TCP, port: 9090}
{{- end }}

{{- /* Pods of the release may reach a port: root, components, port. */ -}}
{{- define "trawl.fromComponents" -}}
- from:
    {{- range .components }}
    - podSelector:
        matchLabels:
          {{- include "trawl.selector" (dict "root" $.root "component" .) | nindent 10 }}
    {{- end }}
    {{- if .workers }}
    {{- include "trawl.workersPeer" .root | nindent 4 }}
    {{- end }}
  ports:
    - {protocol: TCP, port: {{ .port }}}
{{- end }}

{{- define "trawl.workersPeer" -}}
- namespaceSelector:
    matchLabels: {kubernetes.io/metadata.name: {{ include "trawl.workersNamespace" . | quote }}}
  podSelector:
    matchLabels:
      app.kubernetes.io/managed-by: trawl
      app.kubernetes.io/component: worker
{{- end }}

{{- /* A policy that lets a component do what follows, and nothing else. */ -}}
{{- define "trawl.policyHead" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "trawl.metadata" . | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "trawl.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
{{- end }}

{{- define "trawl.testPeer" -}}
- podSelector:
    matchLabels:
      {{- include "trawl.selector" (dict "root" . "component" "test") | nindent 6 }}
{{- end }}

{{- /* The API server: its addresses, or every private one. */ -}}
{{- define "trawl.toKubernetes" -}}
{{- $private := list "10.0.0.0/8" "172.16.0.0/12" "192.168.0.0/16" "100.64.0.0/10" "fc00::/7" -}}
- to:
    {{- range .Values.networkPolicy.kubernetes.cidrs | default $private }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
  ports:
    {{- range .Values.networkPolicy.kubernetes.ports }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end }}

{{- /* From API, dashboard and controller, and the doctor that judges them, to the collector of their traces. */ -}}
{{- define "trawl.toTraces" -}}
{{- with .Values.networkPolicy.traces.to }}
- to:
    {{- toYaml . | nindent 4 }}
  ports:
    {{- range $.Values.networkPolicy.traces.ports }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end }}
{{- end }}
