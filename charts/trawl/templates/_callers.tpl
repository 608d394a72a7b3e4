{{- /* What API and dashboard have of callers and people: ways to them, and settings about them. */ -}}

{{- /* An Ingress: root, component, values, the Service and the name of its port that it leads to, and optionally annotations, which those of the values replace. */ -}}
{{- define "trawl.ingress" -}}
{{- if .values.ingress.enabled }}
{{- $annotations := dict }}
{{- range list .annotations .values.ingress.annotations }}
{{- range $name, $value := . }}{{ $_ := set $annotations $name $value }}{{ end }}
{{- end }}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  {{- include "trawl.metadata" . | nindent 2 }}
  {{- with $annotations }}
  annotations:
    {{- include "trawl.texts" . | nindent 4 }}
  {{- end }}
spec:
  {{- with .values.ingress.className }}
  ingressClassName: {{ . | quote }}
  {{- end }}
  {{- with .values.ingress.tls }}
  tls:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  rules:
    {{- range .values.ingress.hosts }}
    - host: {{ . | quote }}
      http:
        paths:
          - path: /
            pathType: Prefix
            backend:
              service:
                name: {{ $.service }}
                port: {name: {{ $.portName }}}
    {{- end }}
{{- end }}
{{- end }}

{{- /* An HTTPRoute: the same, with the number of the port. It has the defaults of the server, which GitOps would take for changes. */ -}}
{{- define "trawl.httpRoute" -}}
{{- if .values.httpRoute.enabled }}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  {{- include "trawl.metadata" . | nindent 2 }}
spec:
  parentRefs:
    {{- range .values.httpRoute.parentRefs }}
    {{- $parent := dict "group" "gateway.networking.k8s.io" "kind" "Gateway" }}
    {{- range $name, $value := . }}{{ $_ := set $parent $name $value }}{{ end }}
    - {{ toYaml $parent | nindent 6 | trim }}
    {{- end }}
  {{- with .values.httpRoute.hostnames }}
  hostnames:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  rules:
    - matches:
        - path: {type: PathPrefix, value: /}
      backendRefs:
        - {group: "", kind: Service, name: {{ .service }}, port: {{ .port }}, weight: 1}
      # Callers wait up to 30 s for a job, and listen to events until it ends: 0 s is no limit.
      timeouts: {request: 0s}
{{- end }}
{{- end }}

{{- /* Type of a Service that callers reach: the values of that Service. */ -}}
{{- define "trawl.serviceType" -}}
type: {{ .type }}
{{- if ne .type "ClusterIP" }}
externalTrafficPolicy: {{ .externalTrafficPolicy | default "Local" }}
{{- end }}
{{- end }}

{{- /* The Service of the dashboard: that of the API, unless pods of its own serve it or that of the API is open to callers outside, who would find the dashboard without TLS. */ -}}
{{- define "trawl.dashboardService" -}}
{{ and (not .Values.dashboard.apart) (eq .Values.api.service.type "ClusterIP") | ternary "api" "dashboard" }}
{{- end }}

{{- /* Settings of what serves the dashboard. */ -}}
{{- define "trawl.dashboardEnv" -}}
- {name: TRAWL_DASHBOARD_PORT, value: "8081"}
{{- include "trawl.billingEnv" . }}
{{- with .Values.openid.existingSecret }}
- name: TRAWL_OIDC_CLIENT_SECRET
  valueFrom:
    secretKeyRef: {name: {{ . | quote }}, key: client-secret}
{{- end }}
{{- end }}

{{- define "trawl.trustedProxiesEnv" -}}
{{- with .Values.api.trustedProxies }}
- {name: TRAWL_TRUSTED_PROXIES, value: {{ . | quote }}}
{{- end }}
{{- end }}

{{- /* Who may open the dashboard, as a rule of a network policy. */ -}}
{{- define "trawl.fromPeople" -}}
- ports:
    - {protocol: TCP, port: 8081}
  {{- with .Values.networkPolicy.dashboardFrom | default .Values.networkPolicy.apiFrom }}
  from:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- /* Ways of what serves the dashboard to payment provider, mail server and OpenID Connect issuer. */ -}}
{{- define "trawl.toPartners" -}}
{{- with concat (.Values.networkPolicy.billing | default list) (.Values.networkPolicy.openid | default list) }}
{{- include "trawl.toAddresses" (dict "addresses" .) }}
{{- end }}
{{- end }}
