{{- /* Settings of the controller, which the doctor has too: a component as other templates have it. */ -}}
{{- define "trawl.controllerEnv" -}}
{{- with .root }}
{{- $workers := .Values.workers }}
{{- include "trawl.sharedEnv" $ }}
{{- with include "trawl.tlsEnv" (dict "root" . "server" "gateway") | trim }}
{{- . | nindent 0 }}
{{- end }}
{{- with include "trawl.billingEnv" . | trim }}
{{- . | nindent 0 }}
{{- end }}
{{- with include "trawl.trustedProxiesEnv" . | trim }}
{{- . | nindent 0 }}
{{- end }}
{{- if .Values.dashboard.apart }}
- {name: TRAWL_DASHBOARD_PORT, value: none}
{{- end }}
- {name: TRAWL_RUNNER, value: kubernetes}
- {name: TRAWL_GATEWAY_PORT, value: "8082"}
- {name: TRAWL_GATEWAY_ADDRESS, value: {{ include "trawl.gatewayAddress" . | quote }}}
- {name: TRAWL_EGRESS_ADDRESS, value: {{ include "trawl.egressAddress" . | quote }}}
- {name: TRAWL_KUBE_NAMESPACE, value: {{ include "trawl.workersNamespace" . | quote }}}
- {name: TRAWL_WORKER_IMAGE, value: {{ include "trawl.image" (dict "root" . "image" "worker") | quote }}}
- {name: TRAWL_WORKER_ACCOUNT, value: trawl-worker}
- {name: TRAWL_WORKER_CPU, value: {{ $workers.cpu | quote }}}
- {name: TRAWL_WORKER_MEMORY, value: {{ $workers.memory | quote }}}
- {name: TRAWL_WORKER_AWAY_SECONDS, value: {{ $workers.awaySeconds | int64 | quote }}}
{{- with $workers.runtimeClass }}
- {name: TRAWL_WORKER_RUNTIME_CLASS, value: {{ . | quote }}}
{{- end }}
{{- with $workers.priorityClass }}
- {name: TRAWL_WORKER_PRIORITY_CLASS, value: {{ . | quote }}}
{{- end }}
- {name: TRAWL_WORKER_PLACEMENT, value: {{ include "trawl.placementOfWorkers" $workers | trim | quote }}}
{{- with $workers.queue }}
- {name: TRAWL_WORKER_QUEUE, value: {{ . | quote }}}
{{- end }}
{{- with include "trawl.caConfigMap" . }}
- {name: TRAWL_WORKER_CA_CONFIG_MAP, value: {{ . | quote }}}
{{- end }}
- {name: TRAWL_WORKER_HOST_USERS, value: {{ $workers.hostUsers | quote }}}
{{- if include "trawl.adaptsUser" . }}
- {name: TRAWL_WORKER_CLUSTER_USER, value: "true"}
{{- end }}
{{- if $workers.policiesEnforced }}
- {name: TRAWL_WORKER_NETWORK, value: policies-enforced}
{{- end }}
{{- if .Values.backup.existingClaim }}
- {name: TRAWL_BACKUPS_SCHEDULED, value: "true"}
{{- end }}
{{- if .Values.controller.cookiesSecret }}
- {name: TRAWL_COOKIES, value: /etc/trawl/cookies}
{{- end }}
{{- end }}
{{- end }}

{{- define "trawl.cookieMounts" -}}
{{- if .Values.controller.cookiesSecret }}
- {name: cookies, mountPath: /etc/trawl/cookies, readOnly: true}
{{- end }}
{{- end }}

{{- define "trawl.cookieVolumes" -}}
{{- with .Values.controller.cookiesSecret }}
- name: cookies
  secret: {secretName: {{ . | quote }}, defaultMode: 0440}
{{- end }}
{{- end }}
