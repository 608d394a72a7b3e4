{{- /* Labels and annotations of a pod: root, component, values. */ -}}
{{- define "trawl.podMetadata" -}}
labels:
  {{- include "trawl.labels" (merge (dict "moreLabels" .values.podLabels) .) | nindent 2 }}
{{- with .values.podAnnotations }}
annotations:
  {{- include "trawl.texts" . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* True when the cluster chooses user and group. */ -}}
{{- define "trawl.adaptsUser" -}}
{{- if or (eq .Values.adaptSecurityContext "force") (and (eq .Values.adaptSecurityContext "auto") (.Capabilities.APIVersions.Has "security.openshift.io/v1")) }}true{{ end }}
{{- end }}

{{- define "trawl.podSecurity" -}}
runAsNonRoot: true
{{- if not (include "trawl.adaptsUser" .) }}
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "trawl.containerSecurity" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* Fields that every pod has. Kubernetes would otherwise add variables of Services, which in a release named trawl look like unknown settings. */ -}}
{{- define "trawl.podFields" -}}
serviceAccountName: {{ .account }}
automountServiceAccountToken: {{ eq .component "controller" }}
enableServiceLinks: false
securityContext:
  {{- include "trawl.podSecurity" .root | nindent 2 }}
{{- with .root.Values.dnsPolicy }}
dnsPolicy: {{ . }}
{{- end }}
{{- with .root.Values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Where a pod may be. */ -}}
{{- define "trawl.placement" -}}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- include "trawl.texts" . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
topologySpreadConstraints:
{{- with .values.topologySpreadConstraints }}
  {{- toYaml . | nindent 2 }}
{{- else }}
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "trawl.selector" . | nindent 8 }}
{{- end }}
{{- end }}

{{- /* Placement of a pod that runs once: where the pods of its component may be, near whatever others. */ -}}
{{- define "trawl.placementOnce" -}}
{{- $values := set (omit .values "affinity" "topologySpreadConstraints") "affinity" (pick (.values.affinity | default dict) "nodeAffinity") -}}
{{- include "trawl.placement" (set (omit . "values") "values" $values) -}}
{{- end }}

{{- /* Image, rights and resources of a container: root, image, values. */ -}}
{{- define "trawl.container" -}}
image: {{ include "trawl.image" . | quote }}
imagePullPolicy: {{ .root.Values.images.pullPolicy }}
securityContext:
  {{- include "trawl.containerSecurity" . | nindent 2 }}
resources:
  {{- toYaml .values.resources | nindent 2 }}
terminationMessagePolicy: File
{{- end }}

{{- /* A pod is asked for new work until its Service, or a balancer outside, has forgotten it: preStop, in seconds. */ -}}
{{- define "trawl.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: probe}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: probe}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: probe}
  periodSeconds: 3
  timeoutSeconds: 3
lifecycle:
  preStop:
    sleep: {seconds: {{ .preStop | default 5 }}}
{{- end }}

{{- /* Settings that every role has, with those of `settings`. */ -}}
{{- define "trawl.env" -}}
- {name: TRAWL_HOST, value: {{ .root.Values.listenAddress | quote }}}
- {name: TRAWL_PROBE_PORT, value: "9090"}
- {name: TRAWL_WORKERS, value: {{ .root.Values.workers.most | int64 | quote }}}
{{- range $name, $value := .root.Values.settings }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- with .values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Secrets of payments and mail, for the controller and for what serves the dashboard. */ -}}
{{- define "trawl.billingEnv" -}}
{{- with .Values.billing.existingSecret }}
{{- $secret := . }}
{{- range $name, $key := dict "TRAWL_STRIPE_KEY" "stripe-key" "TRAWL_STRIPE_WEBHOOK_SECRET" "stripe-webhook-secret" "TRAWL_SMTP_URL" "smtp-url" }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef: {name: {{ $secret | quote }}, key: {{ $key }}, optional: true}
{{- end }}
{{- end }}
{{- end }}

{{- /* Settings of all that reads the record, Jobs of one command included: what one setting needs of another must be there everywhere. */ -}}
{{- define "trawl.sharedEnv" -}}
{{- $values := .root.Values -}}
{{- include "trawl.env" . | trim }}
- {name: TRAWL_PUBLIC_URL, value: {{ $values.publicUrl | quote }}}
- {name: TRAWL_DASHBOARD_URL, value: {{ $values.dashboardUrl | quote }}}
- {name: TRAWL_INSPECTOR_ADDRESS, value: {{ include "trawl.inspectorAddress" .root | quote }}}
- {name: TRAWL_SECRET_FILE, value: /etc/trawl/secret/secret}
{{- if $values.secret.oldKey }}
- {name: TRAWL_SECRET_OLD_FILE, value: /etc/trawl/secret/old}
{{- end }}
- {name: TRAWL_REDIS_URL_FILE, value: /etc/trawl/redis/url}
- {name: TRAWL_DURABILITY, value: {{ $values.redis.durability }}}
- {name: TRAWL_OBJECTS, value: s3}
- {name: TRAWL_S3_BUCKET, value: {{ $values.s3.bundled.enabled | ternary "trawl" $values.s3.bucket | quote }}}
{{- with include "trawl.s3Endpoint" .root }}
- {name: TRAWL_S3_ENDPOINT, value: {{ . | quote }}}
{{- end }}
{{- with $values.s3.publicEndpoint }}
- {name: TRAWL_S3_PUBLIC_ENDPOINT, value: {{ . | quote }}}
{{- end }}
{{- with $values.s3.region }}
- {name: TRAWL_S3_REGION, value: {{ . | quote }}}
{{- end }}
- {name: TRAWL_S3_PATH_STYLE, value: {{ or $values.s3.bundled.enabled $values.s3.pathStyle | quote }}}
{{- if or $values.s3.bundled.enabled $values.s3.existingSecret }}
{{- $generated := include "trawl.generatedSecret" .root }}
- name: AWS_ACCESS_KEY_ID
  valueFrom:
    secretKeyRef:
      name: {{ $values.s3.existingSecret | default $generated | quote }}
      key: {{ $values.s3.bundled.enabled | ternary "s3-access-key-id" $values.s3.accessKeyIdKey | quote }}
- name: AWS_SECRET_ACCESS_KEY
  valueFrom:
    secretKeyRef:
      name: {{ $values.s3.existingSecret | default $generated | quote }}
      key: {{ $values.s3.bundled.enabled | ternary "s3-secret-access-key" $values.s3.secretAccessKeyKey | quote }}
{{- end }}
{{- if $values.caCertificates.configMap }}
- {name: NODE_EXTRA_CA_CERTS, value: /etc/trawl/ca/ca.crt}
{{- end }}
{{- end }}

{{- define "trawl.sharedMounts" -}}
- {name: secret, mountPath: /etc/trawl/secret, readOnly: true}
- {name: redis, mountPath: /etc/trawl/redis, readOnly: true}
{{- if .root.Values.caCertificates.configMap }}
- {name: ca, mountPath: /etc/trawl/ca, readOnly: true}
{{- end }}
{{- with .values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "trawl.sharedVolumes" -}}
{{- $values := .root.Values -}}
{{- $generated := include "trawl.generatedSecret" .root -}}
- name: secret
  secret:
    secretName: {{ $values.secret.existingSecret | default $generated | quote }}
    defaultMode: 0440
    items:
      - {key: {{ ternary "secret" $values.secret.key (empty $values.secret.existingSecret) | quote }}, path: secret}
      {{- with $values.secret.oldKey }}
      - {key: {{ . | quote }}, path: old}
      {{- end }}
- name: redis
  secret:
    secretName: {{ $values.redis.existingSecret | default $generated | quote }}
    defaultMode: 0440
    items:
      - {key: {{ ternary "redis-url" $values.redis.key (empty $values.redis.existingSecret) | quote }}, path: url}
{{- with $values.caCertificates.configMap }}
- name: ca
  configMap:
    name: {{ . | quote }}
    items:
      - {key: {{ $values.caCertificates.key | quote }}, path: ca.crt}
{{- end }}
{{- with .values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Number of pods of a Deployment: that of the values, or the present one where somebody scaled it, which Helm may not overwrite. kubectl scale and autoscalers write to the subresource; programs with other names than helm, such as Flux, install the chart. */ -}}
{{- define "trawl.replicas" -}}
{{- $live := lookup "apps/v1" "Deployment" .root.Release.Namespace (printf "%s-%s" (include "trawl.name" .root) .component) -}}
{{- $isScaled := false -}}
{{- $isWritten := false -}}
{{- $isApplied := false -}}
{{- range ($live.metadata).managedFields -}}
{{- $owns := hasKey (index (.fieldsV1 | default dict) "f:spec" | default dict) "f:replicas" -}}
{{- if eq (.subresource | default "") "scale" -}}
{{- $isScaled = or $isScaled $owns -}}
{{- else -}}
{{- $isWritten = or $isWritten $owns -}}
{{- $isApplied = or $isApplied (eq .operation "Apply") -}}
{{- end -}}
{{- end -}}
{{- if not (.values.autoscaling).enabled -}}
replicas: {{ $isScaled | ternary ($live.spec).replicas .values.replicas | int64 }}
{{- /* The field of an autoscaler is left out, except while it is that of Helm too: Kubernetes takes 1 for a field that its only owner gives up. Helm 3 gives up what it leaves out, whoever owns it. */ -}}
{{- else if and $live (or $isWritten (not $isApplied)) -}}
replicas: {{ $live.spec.replicas | int64 }}
{{- end -}}
{{- end }}

{{- /* A budget of a component, when it is wanted. */ -}}
{{- define "trawl.disruptionBudget" -}}
{{- if .values.podDisruptionBudget.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "trawl.metadata" . | nindent 2 }}
spec:
  maxUnavailable: {{ .values.podDisruptionBudget.maxUnavailable }}
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "trawl.selector" . | nindent 6 }}
{{- end }}
{{- end }}

{{- /* An autoscaler of a component that has one. */ -}}
{{- define "trawl.autoscaler" -}}
{{- with .values.autoscaling }}{{ if .enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "trawl.metadata" $ | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ include "trawl.name" $.root }}-{{ $.component }}
  minReplicas: {{ .minReplicas }}
  maxReplicas: {{ .maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target:
          type: Utilization
          averageUtilization: {{ .targetCPU }}
{{- end }}{{ end }}
{{- end }}

{{- /* A service account without rights of its own. */ -}}
{{- define "trawl.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "trawl.metadata" . | nindent 2 }}
  {{- with (.values.serviceAccount).annotations }}
  annotations:
    {{- include "trawl.texts" . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}
