{{- /* What the schema cannot say: contradictions between values end with a sentence. */ -}}
{{- define "trawl.check" -}}
{{- $values := .Values -}}
{{- /* A name with nothing behind it removes all that it had by default, and --reuse-values has nothing of what is new in this chart. */ -}}
{{- $groups := list "images" "secret" "caCertificates" "bootstrap" "redis" "redis.bundled" "s3" "s3.bundled" "openid" "billing" "api.ingress" "api.httpRoute" "dashboard.ingress" "dashboard.httpRoute" "workers" "networkPolicy" "networkPolicy.kubernetes" "tls" "monitoring" -}}
{{- if ($values.tls).enabled }}{{ $groups = concat $groups (list "tls.secrets" "tls.certManager") }}{{ end -}}
{{- range $group := $groups -}}
  {{- $value := $values -}}
  {{- range splitList "." $group }}{{ $value = index ($value | default dict) . }}{{ end -}}
  {{- if not (kindIs "map" $value) }}{{ fail (printf "%s has no values below it, not even the defaults: leave its name out where nothing stands behind it; an upgrade with --reuse-values needs --reset-then-reuse-values in place of that" $group) }}{{ end -}}
{{- end -}}
{{- $known := fromYaml (include "trawl.settingDefaults" .) -}}
{{- $forms := fromYaml (include "trawl.settingForms" .) -}}
{{- range $name, $value := $values.settings -}}
  {{- if not (hasKey $known $name) }}{{ fail (printf "settings.%s is not a setting of trawl; docs/config.md lists them" $name) }}{{ end -}}
  {{- if not (kindIs "string" $value) }}{{ fail (printf "settings.%s must be a string: in quotes in a file of values, with --set-string in a command" $name) }}{{ end -}}
  {{- with index (fromYaml (include "trawl.settingsOfValues" $)) $name }}{{ fail (printf "settings.%s is set by %s" $name .) }}{{ end -}}
  {{- with index $forms $name -}}
    {{- if not (or (eq $value "") (regexMatch .form $value)) }}{{ fail (printf "settings.%s must be %s" $name .allowed) }}{{ end -}}
  {{- end -}}
{{- end -}}
{{- range $component := list "api" "dashboard" "controller" "inspector" "egress" -}}
  {{- range (index $values $component).extraEnv -}}
    {{- if hasPrefix "TRAWL_" .name }}{{ fail (printf "%s.extraEnv holds %s: settings of trawl belong into settings" $component .name) }}{{ end -}}
  {{- end -}}
{{- end -}}
{{- range $name, $quantity := dict "cpu" $values.workers.cpu "memory" $values.workers.memory -}}
  {{- if not (regexMatch $forms.TRAWL_WORKER_MEMORY.form (toString $quantity)) }}{{ fail (printf "workers.%s must be %s" $name $forms.TRAWL_WORKER_MEMORY.allowed) }}{{ end -}}
{{- end -}}
{{- /* Every number of values.yaml: a name with nothing behind it, or a fraction, would reach the API server amid an install. */ -}}
{{- range $name := list "workers.most" "workers.mostEnded" "workers.awaySeconds" "backup.keep" "doctor.nodes" "test.seconds" "uninstall.waitSeconds" "bootstrap.credits" "egress.terminationGracePeriodSeconds" "api.service.port" "dashboard.service.port" "api.replicas" "dashboard.replicas" "controller.replicas" "inspector.replicas" "egress.replicas" "api.podDisruptionBudget.maxUnavailable" "dashboard.podDisruptionBudget.maxUnavailable" "controller.podDisruptionBudget.maxUnavailable" "inspector.podDisruptionBudget.maxUnavailable" "egress.podDisruptionBudget.maxUnavailable" "api.autoscaling.minReplicas" "api.autoscaling.maxReplicas" "api.autoscaling.targetCPU" "dashboard.autoscaling.minReplicas" "dashboard.autoscaling.maxReplicas" "dashboard.autoscaling.targetCPU" "inspector.autoscaling.minReplicas" "inspector.autoscaling.maxReplicas" "inspector.autoscaling.targetCPU" -}}
  {{- $number := $values -}}
  {{- $isRead := true -}}
  {{- range splitList "." $name -}}
    {{- $group := $number | default dict -}}
    {{- $number = index $group . -}}
    {{- if or (eq (index $group "enabled" | toString) "false") (and (eq . "autoscaling") (empty $number)) }}{{ $isRead = false }}{{ end -}}
  {{- end -}}
  {{- if eq $name "bootstrap.credits" }}{{ $isRead = not (empty $values.bootstrap.existingSecret) }}{{ end -}}
  {{- /* A pod of egress leaves its Service for 5 s before it drains, and ends for 5 s after. */ -}}
  {{- $leasts := dict "workers.mostEnded" 0 "uninstall.waitSeconds" 0 "egress.terminationGracePeriodSeconds" 10 -}}
  {{- $least := hasKey $leasts $name | ternary (index $leasts $name) (regexMatch "\\.(replicas|maxUnavailable)$" $name | ternary 0 1) -}}
  {{- if not $isRead -}}
  {{- else if and (hasSuffix ".maxUnavailable" $name) (kindIs "string" $number) -}}
    {{- if not (regexMatch "^((100|[0-9]{1,2})%|[0-9]+)$" $number) }}{{ fail (printf "%s must be a whole number, or a percentage such as 25%%" $name) }}{{ end -}}
  {{- else if and (hasSuffix ".port" $name) (gt (float64 $number) 65535.0) }}{{ fail (printf "%s must be 65535 or less" $name) }}
  {{- else if or (kindIs "invalid" $number) (lt (float64 $number) (float64 $least)) (ne (floor $number) (float64 $number)) }}{{ fail (printf "%s must be a whole number of %d or more" $name $least) }}{{ end -}}
{{- end -}}
{{- if gt (float64 $values.uninstall.waitSeconds) 86400.0 }}{{ fail "uninstall.waitSeconds must be 86400 or less" }}{{ end -}}
{{- range $component := list "api" "dashboard" "inspector" -}}
  {{- with (index $values $component).autoscaling -}}
    {{- $isThere := or (ne $component "dashboard") $values.dashboard.apart -}}
    {{- if and $isThere .enabled (gt (float64 .minReplicas) (float64 .maxReplicas)) }}{{ fail (printf "%s.autoscaling.maxReplicas must be at least minReplicas" $component) }}{{ end -}}
  {{- end -}}
{{- end -}}
{{- /* The API server would refuse Deployments amid an install, and Services would find no pods. */ -}}
{{- range $place := list "commonLabels" "api.podLabels" "dashboard.podLabels" "controller.podLabels" "inspector.podLabels" "egress.podLabels" -}}
  {{- $labels := $values -}}
  {{- range splitList "." $place }}{{ $labels = index $labels . | default dict }}{{ end -}}
  {{- range list "name" "instance" "component" -}}
    {{- if hasKey $labels (printf "app.kubernetes.io/%s" .) }}{{ fail (printf "%s must leave app.kubernetes.io/%s as it is: Deployments, Services and network policies find pods by it" $place .) }}{{ end -}}
  {{- end -}}
{{- end -}}
{{- range $secret := $values.imagePullSecrets -}}
  {{- if not (and (kindIs "map" $secret) $secret.name) }}{{ fail "each entry of imagePullSecrets needs a name, such as {name: registry}" }}{{ end -}}
{{- end -}}
{{- range $name, $hosts := dict "api.ingress.hosts" $values.api.ingress.hosts "api.httpRoute.hostnames" $values.api.httpRoute.hostnames "dashboard.ingress.hosts" $values.dashboard.ingress.hosts "dashboard.httpRoute.hostnames" $values.dashboard.httpRoute.hostnames -}}
  {{- range $hosts }}{{ if not (kindIs "string" .) }}{{ fail (printf "each entry of %s must be the name of a host, such as trawl.example.com" $name) }}{{ end }}{{ end -}}
{{- end -}}
{{- if $values.networkPolicy.enabled -}}
{{- /* The API server would refuse such a policy after it has let in pods that have none then. */ -}}
{{- $cidr := "^[.:0-9A-Fa-f]+/[0-9]{1,3}$" -}}
{{- range $values.networkPolicy.kubernetes.cidrs -}}
  {{- if not (regexMatch $cidr (toString .)) }}{{ fail (printf "networkPolicy.kubernetes.cidrs: %v is no CIDR such as 10.96.0.1/32" .) }}{{ end -}}
{{- end -}}
{{- /* A port that is missing would open every port. */ -}}
{{- range $name := list "redis" "s3" "billing" "openid" "workersS3" "egressTo" -}}
  {{- range index $values.networkPolicy $name -}}
    {{- if not (and (kindIs "map" .) .cidr .port) }}{{ fail (printf "each entry of networkPolicy.%s needs a cidr and a port, such as {cidr: 10.0.0.7/32, port: 6379}" $name) }}{{ end -}}
    {{- if not (regexMatch $cidr (toString .cidr)) }}{{ fail (printf "networkPolicy.%s: %s is no CIDR such as 10.0.0.7/32" $name .cidr) }}{{ end -}}
    {{- include "trawl.checkPort" (dict "name" $name "port" .port) -}}
  {{- end -}}
{{- end -}}
{{- range $name := list "dns" "kubernetes" "traces" -}}
  {{- $ports := (index $values.networkPolicy $name | default dict).ports -}}
  {{- if not $ports }}{{ fail (printf "networkPolicy.%s.ports must name at least one port: without one every port is open" $name) }}{{ end -}}
  {{- range $ports }}{{ include "trawl.checkPort" (dict "name" (printf "%s.ports" $name) "port" .) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if contains "." .Release.Name }}{{ fail (printf "the name of the release, %s, must have no dot: Services begin with it" .Release.Name) }}{{ end -}}
{{- if and (semverCompare "<1.36.0-0" .Capabilities.KubeVersion.Version) (regexMatch "^[0-9]" .Release.Name) }}{{ fail (printf "the name of the release, %s, must begin with a letter before Kubernetes 1.36: Services begin with it" .Release.Name) }}{{ end -}}
{{- if and $values.backup.existingClaim (not (regexMatch "^(@(hourly|daily|midnight|weekly|monthly|yearly|annually)|@every [0-9][0-9hms.]*|[^ @]+( +[^ ]+){4})$" ($values.backup.schedule | default ""))) }}{{ fail "backup.schedule must be five fields of cron such as 17 3 * * *, or @daily" }}{{ end -}}
{{- if not (regexMatch "^https?://[^/?#@ ]+" ($values.publicUrl | default "")) }}{{ fail "publicUrl must be the http:// or https:// URL at which callers reach the API, such as https://trawl.example.com" }}{{ end -}}
{{- if not (regexMatch "^https?://[^/?#@ ]+/?$" ($values.dashboardUrl | default "")) }}{{ fail "dashboardUrl must be the http:// or https:// URL at which people reach the dashboard, without a path, such as https://dashboard.example.com" }}{{ end -}}
{{- range $value, $setting := dict "publicUrl" "PUBLIC_URL" "dashboardUrl" "DASHBOARD_URL" "s3.bucket" "S3_BUCKET" "s3.endpoint" "S3_ENDPOINT" "s3.publicEndpoint" "S3_PUBLIC_ENDPOINT" "s3.region" "S3_REGION" "api.trustedProxies" "TRUSTED_PROXIES" -}}
  {{- $text := $values -}}
  {{- range splitList "." $value }}{{ $text = index $text . | default "" }}{{ end -}}
  {{- $form := index $forms (printf "TRAWL_%s" $setting) -}}
  {{- if and $text (not (regexMatch $form.form $text)) }}{{ fail (printf "%s must be %s" $value $form.allowed) }}{{ end -}}
{{- end -}}
{{- /* An empty one would count as the less isolated of both, or end a template without a sentence. */ -}}
{{- range $name, $flag := dict "networkPolicy.enabled" $values.networkPolicy.enabled "workers.hostUsers" $values.workers.hostUsers "workers.policiesEnforced" $values.workers.policiesEnforced "s3.bundled.enabled" $values.s3.bundled.enabled "dashboard.apart" $values.dashboard.apart "tls.enabled" $values.tls.enabled "uninstall.force" $values.uninstall.force -}}
  {{- if not (kindIs "bool" $flag) }}{{ fail (printf "%s must be true or false" $name) }}{{ end -}}
{{- end -}}
{{- if and (eq (int64 $values.api.service.port) 8081) (eq (include "trawl.dashboardService" .) "api") }}{{ fail "api.service.port must be another one than 8081, at which the same Service has the dashboard" }}{{ end -}}
{{- if and $values.bootstrap.existingSecret (not (regexMatch "^[a-z0-9][a-z0-9-]{0,62}$" ($values.bootstrap.account | default ""))) }}{{ fail "bootstrap.account must be a slug: 1 to 63 characters of a-z, 0-9 and -, not with - at its beginning" }}{{ end -}}
{{- range $name, $label := $values.workers.nodeSelector -}}
  {{- if not (kindIs "string" $label) }}{{ fail (printf "workers.nodeSelector.%s must be a string: in quotes in a file of values, with --set-string in a command" $name) }}{{ end -}}
{{- end -}}
{{- if not (or $values.secret.existingSecret $values.generateSecrets) }}{{ fail (printf "secret.existingSecret must name a Secret: kubectl create secret generic trawl --namespace %s --from-literal=secret=\"$(openssl rand -base64 32)\"" .Release.Namespace) }}{{ end -}}
{{- if and (not $values.redis.bundled.enabled) (not $values.redis.existingSecret) }}{{ fail "redis.existingSecret must name a Secret with the URL of Redis; redis.bundled.enabled=true installs one for trying out" }}{{ end -}}
{{- if and $values.redis.bundled.enabled $values.redis.existingSecret }}{{ fail "redis.existingSecret and redis.bundled.enabled exclude each other" }}{{ end -}}
{{- if and $values.redis.bundled.enabled (not $values.generateSecrets) }}{{ fail "redis.bundled.enabled needs generateSecrets: its password is made at the first install" }}{{ end -}}
{{- if and $values.s3.bundled.enabled (not $values.generateSecrets) }}{{ fail "s3.bundled.enabled needs generateSecrets: its credentials are made at the first install" }}{{ end -}}
{{- if and $values.s3.bundled.enabled (or $values.s3.bucket $values.s3.endpoint $values.s3.existingSecret) }}{{ fail "s3.bundled.enabled excludes s3.bucket, s3.endpoint and s3.existingSecret" }}{{ end -}}
{{- if not (or $values.s3.bucket $values.s3.bundled.enabled) }}{{ fail "s3.bucket must name a bucket; s3.bundled.enabled=true installs a server with one for trying out" }}{{ end -}}
{{- if and $values.tls.ca $values.tls.caConfigMap }}{{ fail "tls.ca and tls.caConfigMap exclude each other" }}{{ end -}}
{{- if and $values.tls.enabled (not $values.tls.certManager.issuerRef) -}}
  {{- range $server, $secret := $values.tls.secrets -}}
    {{- if not $secret }}{{ fail (printf "tls.secrets.%s must name a Secret with tls.crt and tls.key, or tls.certManager.issuerRef an issuer of cert-manager that makes it" $server) }}{{ end -}}
  {{- end -}}
{{- end -}}
{{- if and $values.tls.enabled (not (or $values.tls.ca $values.tls.caConfigMap)) }}{{ fail "tls.ca or tls.caConfigMap must hold the authority of the certificates: no public one signs names inside a cluster, so no pod would trust another" }}{{ end -}}
{{- if has $values.redis.durability (list "strict" "relaxed") | not }}{{ fail "redis.durability must be strict or relaxed" }}{{ end -}}
{{- if has $values.adaptSecurityContext (list "auto" "force" "disabled") | not }}{{ fail "adaptSecurityContext must be auto, force or disabled" }}{{ end -}}
{{- if not (regexMatch $forms.TRAWL_KUBE_NAMESPACE.form (include "trawl.workersNamespace" .)) }}{{ fail (printf "workers.namespace must be the name of a Kubernetes namespace, of at most 63 characters; it would be %s" (include "trawl.workersNamespace" .)) }}{{ end -}}
{{- if contains "://" ($values.images.registry | default "") }}{{ fail "images.registry must have no scheme, such as registry.example.com/trawl" }}{{ end -}}
{{- range $name := list "server" "worker" "redis" "s3" -}}
  {{- $digest := (index $values.images $name).digest -}}
  {{- if and $digest (not (hasPrefix "sha256:" $digest)) }}{{ fail (printf "images.%s.digest must begin with sha256:" $name) }}{{ end -}}
{{- end -}}
{{- if eq (include "trawl.workersNamespace" .) .Release.Namespace }}{{ fail "workers.namespace must be another one than that of the release: it is closed to everything but workers" }}{{ end -}}
{{- if and $values.workers.createPriorityClass (not $values.workers.priorityClass) }}{{ fail "workers.createPriorityClass needs workers.priorityClass, the name of that PriorityClass" }}{{ end -}}
{{- if and $values.networkPolicy.enabled (not $values.redis.bundled.enabled) (not $values.networkPolicy.redis) }}{{ fail "networkPolicy.redis must name the addresses of Redis, such as [{cidr: 10.0.0.7/32, port: 6379}]" }}{{ end -}}
{{- if and $values.networkPolicy.enabled (not $values.s3.bundled.enabled) (not $values.networkPolicy.s3) }}{{ fail "networkPolicy.s3 must name the addresses of the object store, such as [{cidr: 0.0.0.0/0, port: 443}] for AWS" }}{{ end -}}
{{- if and $values.networkPolicy.enabled (not $values.s3.bundled.enabled) (not $values.networkPolicy.workersS3) -}}
  {{- $private := "^(10|127|192[.]168|169[.]254|172[.](1[6-9]|2[0-9]|3[01])|100[.](6[4-9]|[7-9][0-9]|1[01][0-9]|12[0-7]))[.]|^\\[?(f[cd]|fe[89ab])[0-9a-f]*:" -}}
  {{- $host := regexReplaceAll "^https?://|(:[0-9]+)?/?$" (lower ($values.s3.endpoint | default "")) "" -}}
  {{- $hasPublic := false -}}
  {{- range $values.networkPolicy.s3 }}{{ $hasPublic = or $hasPublic (not (regexMatch $private (lower (toString .cidr)))) }}{{ end -}}
  {{- if or (not $hasPublic) (regexMatch $private $host) (regexMatch "^[^.:]+$|[.]svc([.]|$)" $host) }}{{ fail "networkPolicy.workersS3 must name the addresses of the object store, which are private, such as [{cidr: 10.2.0.9/32, port: 9000}]: workers upload to those without egress" }}{{ end -}}
{{- end -}}
{{- if and $values.networkPolicy.enabled ($values.settings).TRAWL_TRACES_URL (not $values.networkPolicy.traces.to) }}{{ fail "networkPolicy.traces.to must name the collector of TRAWL_TRACES_URL, such as [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]" }}{{ end -}}
{{- range $component := list "api" "dashboard" -}}
  {{- $way := index $values $component -}}
  {{- if and (or $way.ingress.enabled $way.httpRoute.enabled) (not $values.api.trustedProxies) }}{{ fail (printf "api.trustedProxies must name the addresses of the proxy with %s.ingress or %s.httpRoute: otherwise every caller has its address, and one who guesses keys gets all blocked" $component $component) }}{{ end -}}
  {{- if and $way.ingress.enabled (not $way.ingress.hosts) }}{{ fail (printf "%s.ingress.hosts must name at least one host" $component) }}{{ end -}}
  {{- if and $way.httpRoute.enabled (not $way.httpRoute.parentRefs) }}{{ fail (printf "%s.httpRoute.parentRefs must name a Gateway" $component) }}{{ end -}}
  {{- range $way.httpRoute.parentRefs }}{{ if not (kindIs "map" .) }}{{ fail (printf "each entry of %s.httpRoute.parentRefs needs a name, such as {name: public}" $component) }}{{ end }}{{ end -}}
{{- end -}}
{{- range $component := $values.dashboard.apart | ternary (list "api" "dashboard") (list "api") -}}
  {{- $service := (index $values $component).service -}}
  {{- if not (has $service.type (list "ClusterIP" "NodePort" "LoadBalancer")) }}{{ fail (printf "%s.service.type must be ClusterIP, NodePort or LoadBalancer" $component) }}{{ end -}}
  {{- $policy := $service.externalTrafficPolicy | default "Local" -}}
  {{- if not (has $policy (list "Local" "Cluster")) }}{{ fail (printf "%s.service.externalTrafficPolicy must be Local or Cluster" $component) }}{{ end -}}
  {{- if and (ne $service.type "ClusterIP") (eq $policy "Cluster") (not $values.api.trustedProxies) }}{{ fail (printf "api.trustedProxies must name the addresses of the balancer and of the nodes with %s.service.externalTrafficPolicy Cluster: otherwise every caller has the address of a node, and one who guesses keys gets all blocked" $component) }}{{ end -}}
{{- end -}}
{{- if and (or $values.dashboard.ingress.enabled $values.dashboard.httpRoute.enabled) (hasPrefix "http://127.0.0.1" $values.dashboardUrl) }}{{ fail "dashboardUrl must be the URL at which dashboard.ingress or dashboard.httpRoute answers: the dashboard refuses what pages of another origin send" }}{{ end -}}
{{- $host := regexReplaceAll "^https?://|(:[0-9]+)?/?$" $values.dashboardUrl "" | lower -}}
{{- if $values.dashboard.ingress.enabled -}}
  {{- if not (or (has $host $values.dashboard.ingress.hosts) (has (regexReplaceAll "^[^.]+" $host "*") $values.dashboard.ingress.hosts)) }}{{ fail (printf "dashboard.ingress.hosts must name %s, the host of dashboardUrl: the dashboard refuses what pages of another origin send" $host) }}{{ end -}}
{{- end -}}
{{- if and $values.dashboard.httpRoute.enabled $values.dashboard.httpRoute.hostnames -}}
  {{- $isNamed := has $host $values.dashboard.httpRoute.hostnames -}}
  {{- range $values.dashboard.httpRoute.hostnames }}{{ if and (hasPrefix "*." .) (hasSuffix (trimPrefix "*" .) $host) }}{{ $isNamed = true }}{{ end }}{{ end -}}
  {{- if not $isNamed }}{{ fail (printf "dashboard.httpRoute.hostnames must name %s, the host of dashboardUrl, or be empty: the dashboard refuses what pages of another origin send" $host) }}{{ end -}}
{{- end -}}
{{- if and (semverCompare "<1.33.0-0" .Capabilities.KubeVersion.Version) (not $values.workers.hostUsers) }}{{ fail "workers.hostUsers must be true before Kubernetes 1.33, whose pods have no user namespaces" }}{{ end -}}
{{- range $resources := $values.workers.extraResources -}}
  {{- $are := and (kindIs "map" $resources) (eq (len $resources) 2) -}}
  {{- range $part, $amounts := ternary $resources dict $are -}}
    {{- $are = and $are (has $part (list "limits" "requests")) (kindIs "map" $amounts) -}}
    {{- range ternary $amounts dict (kindIs "map" $amounts) }}{{ $are = and $are (kindIs "string" .) }}{{ end -}}
  {{- end -}}
  {{- if not $are }}{{ fail "each entry of workers.extraResources must hold limits and requests, each quantity as a text, such as {limits: {cpu: \"2\", memory: 3Gi}, requests: {cpu: 250m, memory: 3Gi}}" }}{{ end -}}
{{- end -}}
{{- include "trawl.checkWorkersStay" . -}}
{{- end }}

{{- define "trawl.checkPort" -}}
{{- $isPort := regexMatch "^[1-9][0-9]{0,4}$" (toString .port) -}}
{{- if or (not $isPort) (gt (float64 .port) 65535.0) }}{{ fail (printf "networkPolicy.%s: %v is no port such as 443" .name .port) }}{{ end -}}
{{- end -}}

{{- /* Settings that values of the chart set, each with that value. */ -}}
{{- define "trawl.settingsOfValues" -}}
TRAWL_HOST: listenAddress
TRAWL_PORT: the chart, as 8080
TRAWL_GATEWAY_PORT: the chart, as 8082
TRAWL_PROBE_PORT: the chart, as 9090
TRAWL_PUBLIC_URL: publicUrl
TRAWL_DASHBOARD_PORT: dashboard.apart
TRAWL_DASHBOARD_URL: dashboardUrl
TRAWL_SECRET: secret.existingSecret
TRAWL_SECRET_OLD: secret.oldKey
TRAWL_TLS_CERT_FILE: tls.secrets
TRAWL_TLS_KEY_FILE: tls.secrets
TRAWL_TLS_CA_FILE: tls.ca
TRAWL_CLOCK_FILE: nothing, because it is for rehearsals on one machine
TRAWL_TRUSTED_PROXIES: api.trustedProxies
TRAWL_REDIS_URL: redis.existingSecret
TRAWL_DURABILITY: redis.durability
TRAWL_OBJECTS: the chart, as s3
TRAWL_S3_BUCKET: s3.bucket
TRAWL_S3_ENDPOINT: s3.endpoint
TRAWL_S3_PUBLIC_ENDPOINT: s3.publicEndpoint
TRAWL_S3_REGION: s3.region
TRAWL_S3_PATH_STYLE: s3.pathStyle
TRAWL_BACKUPS_SCHEDULED: backup.existingClaim
TRAWL_RUNNER: the chart, as kubernetes
TRAWL_WORKERS: workers.most
TRAWL_SANDBOX: the image
TRAWL_CGROUP: nothing, because the limits of the pod hold
TRAWL_COOKIES: controller.cookiesSecret
TRAWL_DATA: the chart, as /scratch/data
TRAWL_GATEWAY_ADDRESS: the chart, as its Service
TRAWL_EGRESS_ADDRESS: the chart, as its Service
TRAWL_INSPECTOR_ADDRESS: the chart, as its Service
TRAWL_TERMINATION_FILE: the controller, for each worker
TRAWL_API_URL: nothing, because only trawl get and trawl login read it
TRAWL_API_KEY: nothing, because only trawl get and trawl login read it
TRAWL_KUBE_NAMESPACE: workers.namespace
TRAWL_WORKER_IMAGE: images.worker
TRAWL_WORKER_ACCOUNT: the chart, as trawl-worker
TRAWL_WORKER_CPU: workers.cpu
TRAWL_WORKER_MEMORY: workers.memory
TRAWL_WORKER_AWAY_SECONDS: workers.awaySeconds
TRAWL_WORKER_RUNTIME_CLASS: workers.runtimeClass
TRAWL_WORKER_PRIORITY_CLASS: workers.priorityClass
TRAWL_WORKER_QUEUE: workers.queue
TRAWL_WORKER_PLACEMENT: workers.nodeSelector and the values beside it
TRAWL_WORKER_CA_CONFIG_MAP: tls.caConfigMap
TRAWL_WORKER_HOST_USERS: workers.hostUsers
TRAWL_WORKER_CLUSTER_USER: adaptSecurityContext
TRAWL_WORKER_NETWORK: workers.policiesEnforced
TRAWL_STRIPE_KEY: billing.existingSecret
TRAWL_STRIPE_WEBHOOK_SECRET: billing.existingSecret
TRAWL_SMTP_URL: billing.existingSecret
TRAWL_OIDC_CLIENT_SECRET: openid.existingSecret
{{- end }}
{{- /* Ends an upgrade that would remove workers with their namespace. `helm template` sees no cluster, and passes. */ -}}
{{- define "trawl.checkWorkersStay" -}}
{{- $live := lookup "apps/v1" "Deployment" .Release.Namespace (printf "%s-controller" (include "trawl.name" .)) -}}
{{- $before := "" -}}
{{- range (((($live.spec).template).spec).containers) -}}
  {{- range .env }}{{ if eq .name "TRAWL_KUBE_NAMESPACE" }}{{ $before = .value }}{{ end }}{{ end -}}
{{- end -}}
{{- if not $before -}}
{{- else if ne $before (include "trawl.workersNamespace" .) -}}
  {{- with (lookup "batch/v1" "Job" $before "").items }}{{ fail (printf "workers.namespace: %d Jobs of workers are in %s, and this upgrade leaves that namespace: repeat it when trawl admin drain has let them end and the controller has removed them" (len .) $before) }}{{ end -}}
{{- else if not .Values.workers.createNamespace -}}
  {{- $metadata := (lookup "v1" "Namespace" "" $before).metadata | default dict -}}
  {{- $marks := $metadata.annotations | default dict -}}
  {{- $isOfHelm := eq (index ($metadata.labels | default dict) "app.kubernetes.io/managed-by" | default "") "Helm" -}}
  {{- $isOurs := and $isOfHelm (eq (index $marks "meta.helm.sh/release-name" | default "") .Release.Name) -}}
  {{- if and $isOurs (ne (index $marks "helm.sh/resource-policy" | default "") "keep") }}{{ fail (printf "workers.createNamespace: this upgrade would remove the namespace %s with all that is in it; to keep it, say before: kubectl annotate namespace %s helm.sh/resource-policy=keep" $before $before) }}{{ end -}}
{{- end -}}
{{- end }}
