{{- /* TLS between pods: root, and server (gateway, inspector or egress) for pods that serve. */ -}}
{{- define "trawl.tlsEnv" -}}
{{- if .root.Values.tls.enabled }}
{{- if .server }}
- {name: TRAWL_TLS_CERT_FILE, value: /var/run/trawl-tls/tls.crt}
- {name: TRAWL_TLS_KEY_FILE, value: /var/run/trawl-tls/tls.key}
{{- end }}
{{- if include "trawl.caConfigMap" .root }}
- {name: TRAWL_TLS_CA_FILE, value: /var/run/trawl-ca/ca.crt}
{{- end }}
{{- end }}
{{- end }}

{{- define "trawl.tlsMounts" -}}
{{- if .root.Values.tls.enabled }}
{{- if .server }}
- {name: tls, mountPath: /var/run/trawl-tls, readOnly: true}
{{- end }}
{{- if include "trawl.caConfigMap" .root }}
- {name: authorities, mountPath: /var/run/trawl-ca, readOnly: true}
{{- end }}
{{- end }}
{{- end }}

{{- define "trawl.tlsVolumes" -}}
{{- if .root.Values.tls.enabled }}
{{- with .server }}
- name: tls
  secret:
    secretName: {{ include "trawl.tlsSecret" $ | quote }}
    defaultMode: 0440
    items:
      - {key: tls.crt, path: tls.crt}
      - {key: tls.key, path: tls.key}
{{- end }}
{{- with include "trawl.caConfigMap" .root }}
- name: authorities
  configMap:
    name: {{ . | quote }}
    defaultMode: 0440
    items:
      - {key: ca.crt, path: ca.crt}
{{- end }}
{{- end }}
{{- end }}

{{- /* The Secret of a server: the named one, or that which cert-manager keeps. */ -}}
{{- define "trawl.tlsSecret" -}}
{{ index .root.Values.tls.secrets .server | default (printf "%s-%s-tls" (include "trawl.name" .root) .server) }}
{{- end }}
