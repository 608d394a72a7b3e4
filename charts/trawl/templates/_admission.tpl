{{- /* Written by src/admin/write-chart.ts out of src/runners/kubernetes/admission-rules.ts; do not edit. */ -}}
{{- define "trawl.admissionConditions" -}}
matchConditions:
- name: |-
    changed
  expression: |-
    request.operation == 'CREATE' || (request.kind.kind == 'Job'
      ? object.spec.exists(f, f != 'suspend' && (!(f in oldObject.spec) || object.spec[f] != oldObject.spec[f])) ||
        oldObject.spec.exists(f, !(f in object.spec))
      : object.spec != oldObject.spec) || (request.userInfo.username.endsWith(':trawl-controller') &&
      ['labels', 'annotations'].exists(k, object.metadata[?k].orValue({}) != oldObject.metadata[?k].orValue({})))
variables:
- name: |-
    pod
  expression: |-
    request.kind.kind == 'Job' ? object.spec.template.spec : object.spec
- name: |-
    marks
  expression: |-
    request.kind.kind == 'Job' ? object.spec.template.metadata : object.metadata
- name: |-
    worker
  expression: |-
    variables.pod.containers[0]
{{- end }}

{{- define "trawl.admissionRules" -}}
- message: |-
    trawl: one container
  expression: |-
    (variables.pod.containers.size() == 1)
- message: |-
    trawl: only the image of workers
  expression: |-
    (variables.worker.image in [{{ include "trawl.dyns" .images }}])
- message: |-
    trawl: only the name of workers
  expression: |-
    (has(variables.worker.name) && (variables.worker.name == "worker"))
- message: |-
    trawl: only the imagePullPolicy of workers
  expression: |-
    (has(variables.worker.imagePullPolicy) && (variables.worker.imagePullPolicy == "IfNotPresent" || variables.worker.imagePullPolicy == "Always"))
- message: |-
    trawl: only the args of workers
  expression: |-
    (has(variables.worker.args)) && (variables.worker.args == [dyn("worker"), dyn("--token-file"), dyn("/var/run/trawl/token")] || variables.worker.args.size() == 3 && variables.worker.args[0] == "worker" && variables.worker.args[1] == "--try-network" && variables.worker.args[2].matches("^[0-9a-z.:\\[\\]][0-9a-z.:\\[\\]-]*:[0-9]+$"))
{{- if .network }}
{{- if .plugins }}
{{- if .caConfigMap }}
- message: |-
    trawl: only the env of workers
  expression: |-
    (has(variables.worker.env) && (variables.worker.env == [dyn({"name": dyn("TRAWL_GATEWAY_ADDRESS"), "value": dyn({{ .gateway | toRawJson }})}), dyn({"name": dyn("TRAWL_EGRESS_ADDRESS"), "value": dyn({{ .egress | toRawJson }})}), dyn({"name": dyn("TRAWL_LOG_LEVEL"), "value": dyn({{ .logLevel | toRawJson }})}), dyn({"name": dyn("TRAWL_WORKER_NETWORK"), "value": dyn({{ .network | toRawJson }})}), dyn({"name": dyn("TRAWL_YTDLP_PLUGINS"), "value": dyn({{ .plugins | toRawJson }})}), dyn({"name": dyn("TRAWL_DATA"), "value": dyn("/scratch")}), dyn({"name": dyn("HOME"), "value": dyn("/scratch")}), dyn({"name": dyn("TMPDIR"), "value": dyn("/scratch")}), dyn({"name": dyn("XDG_CACHE_HOME"), "value": dyn("/scratch/cache")}), dyn({"name": dyn("TRAWL_TLS_CA_FILE"), "value": dyn("/var/run/trawl-ca/ca.crt")}), dyn({"name": dyn("TRAWL_TERMINATION_FILE"), "value": dyn("/dev/termination-log")})]))
{{- else }}
- message: |-
    trawl: only the env of workers
  expression: |-
    (has(variables.worker.env) && (variables.worker.env == [dyn({"name": dyn("TRAWL_GATEWAY_ADDRESS"), "value": dyn({{ .gateway | toRawJson }})}), dyn({"name": dyn("TRAWL_EGRESS_ADDRESS"), "value": dyn({{ .egress | toRawJson }})}), dyn({"name": dyn("TRAWL_LOG_LEVEL"), "value": dyn({{ .logLevel | toRawJson }})}), dyn({"name": dyn("TRAWL_WORKER_NETWORK"), "value": dyn({{ .network | toRawJson }})}), dyn({"name": dyn("TRAWL_YTDLP_PLUGINS"), "value": dyn({{ .plugins | toRawJson }})}), dyn({"name": dyn("TRAWL_DATA"), "value": dyn("/scratch")}), dyn({"name": dyn("HOME"), "value": dyn("/scratch")}), dyn({"name": dyn("TMPDIR"), "value": dyn("/scratch")}), dyn({"name": dyn("XDG_CACHE_HOME"), "value": dyn("/scratch/cache")}), dyn({"name": dyn("TRAWL_TERMINATION_FILE"), "value": dyn("/dev/termination-log")})]))
{{- end }}
{{- else }}
{{- if .caConfigMap }}
- message: |-
    trawl: only the env of workers
  expression: |-
    (has(variables.worker.env) && (variables.worker.env == [dyn({"name": dyn("TRAWL_GATEWAY_ADDRESS"), "value": dyn({{ .gateway | toRawJson }})}), dyn({"name": dyn("TRAWL_EGRESS_ADDRESS"), "value": dyn({{ .egress | toRawJson }})}), dyn({"name": dyn("TRAWL_LOG_LEVEL"), "value": dyn({{ .logLevel | toRawJson }})}), dyn({"name": dyn("TRAWL_WORKER_NETWORK"), "value": dyn({{ .network | toRawJson }})}), dyn({"name": dyn("TRAWL_DATA"), "value": dyn("/scratch")}), dyn({"name": dyn("HOME"), "value": dyn("/scratch")}), dyn({"name": dyn("TMPDIR"), "value": dyn("/scratch")}), dyn({"name": dyn("XDG_CACHE_HOME"), "value": dyn("/scratch/cache")}), dyn({"name": dyn("TRAWL_TLS_CA_FILE"), "value": dyn("/var/run/trawl-ca/ca.crt")}), dyn({"name": dyn("TRAWL_TERMINATION_FILE"), "value": dyn("/dev/termination-log")})]))
{{- else }}
- message: |-
    trawl: only the env of workers
  expression: |-
    (has(variables.worker.env) && (variables.worker.env == [dyn({"name": dyn("TRAWL_GATEWAY_ADDRESS"), "value": dyn({{ .gateway | toRawJson }})}), dyn({"name": dyn("TRAWL_EGRESS_ADDRESS"), "value": dyn({{ .egress | toRawJson }})}), dyn({"name": dyn("TRAWL_LOG_LEVEL"), "value": dyn({{ .logLevel | toRawJson }})}), dyn({"name": dyn("TRAWL_WORKER_NETWORK"), "value": dyn({{ .network | toRawJson }})}), dyn({"name": dyn("TRAWL_DATA"), "value": dyn("/scratch")}), dyn({"name": dyn("HOME"), "value": dyn("/scratch")}), dyn({"name": dyn("TMPDIR"), "value": dyn("/scratch")}), dyn({"name": dyn("XDG_CACHE_HOME"), "value": dyn("/scratch/cache")}), dyn({"name": dyn("TRAWL_TERMINATION_FILE"), "value": dyn("/dev/termination-log")})]))
{{- end }}
{{- end }}
{{- else }}
{{- if .plugins }}
{{- if .caConfigMap }}
- message: |-
    trawl: only the env of workers
  expression: |-
    (has(variables.worker.env) && (variables.worker.env == [dyn({"name": dyn("TRAWL_GATEWAY_ADDRESS"), "value": dyn({{ .gateway | toRawJson }})}), dyn({"name": dyn("TRAWL_EGRESS_ADDRESS"), "value": dyn({{ .egress | toRawJson }})}), dyn({"name": dyn("TRAWL_LOG_LEVEL"), "value": dyn({{ .logLevel | toRawJson }})}), dyn({"name": dyn("TRAWL_YTDLP_PLUGINS"), "value": dyn({{ .plugins | toRawJson }})}), dyn({"name": dyn("TRAWL_DATA"), "value": dyn("/scratch")}), dyn({"name": dyn("HOME"), "value": dyn("/scratch")}), dyn({"name": dyn("TMPDIR"), "value": dyn("/scratch")}), dyn({"name": dyn("XDG_CACHE_HOME"), "value": dyn("/scratch/cache")}), dyn({"name": dyn("TRAWL_TLS_CA_FILE"), "value": dyn("/var/run/trawl-ca/ca.crt")}), dyn({"name": dyn("TRAWL_TERMINATION_FILE"), "value": dyn("/dev/termination-log")})]))
{{- else }}
- message: |-
    trawl: only the env of workers
  expression: |-
    (has(variables.worker.env) && (variables.worker.env == [dyn({"name": dyn("TRAWL_GATEWAY_ADDRESS"), "value": dyn({{ .gateway | toRawJson }})}), dyn({"name": dyn("TRAWL_EGRESS_ADDRESS"), "value": dyn({{ .egress | toRawJson }})}), dyn({"name": dyn("TRAWL_LOG_LEVEL"), "value": dyn({{ .logLevel | toRawJson }})}), dyn({"name": dyn("TRAWL_YTDLP_PLUGINS"), "value": dyn({{ .plugins | toRawJson }})}), dyn({"name": dyn("TRAWL_DATA"), "value": dyn("/scratch")}), dyn({"name": dyn("HOME"), "value": dyn("/scratch")}), dyn({"name": dyn("TMPDIR"), "value": dyn("/scratch")}), dyn({"name": dyn("XDG_CACHE_HOME"), "value": dyn("/scratch/cache")}), dyn({"name": dyn("TRAWL_TERMINATION_FILE"), "value": dyn("/dev/termination-log")})]))
{{- end }}
{{- else }}
{{- if .caConfigMap }}
- message: |-
    trawl: only the env of workers
  expression: |-
    (has(variables.worker.env) && (variables.worker.env == [dyn({"name": dyn("TRAWL_GATEWAY_ADDRESS"), "value": dyn({{ .gateway | toRawJson }})}), dyn({"name": dyn("TRAWL_EGRESS_ADDRESS"), "value": dyn({{ .egress | toRawJson }})}), dyn({"name": dyn("TRAWL_LOG_LEVEL"), "value": dyn({{ .logLevel | toRawJson }})}), dyn({"name": dyn("TRAWL_DATA"), "value": dyn("/scratch")}), dyn({"name": dyn("HOME"), "value": dyn("/scratch")}), dyn({"name": dyn("TMPDIR"), "value": dyn("/scratch")}), dyn({"name": dyn("XDG_CACHE_HOME"), "value": dyn("/scratch/cache")}), dyn({"name": dyn("TRAWL_TLS_CA_FILE"), "value": dyn("/var/run/trawl-ca/ca.crt")}), dyn({"name": dyn("TRAWL_TERMINATION_FILE"), "value": dyn("/dev/termination-log")})]))
{{- else }}
- message: |-
    trawl: only the env of workers
  expression: |-
    (has(variables.worker.env) && (variables.worker.env == [dyn({"name": dyn("TRAWL_GATEWAY_ADDRESS"), "value": dyn({{ .gateway | toRawJson }})}), dyn({"name": dyn("TRAWL_EGRESS_ADDRESS"), "value": dyn({{ .egress | toRawJson }})}), dyn({"name": dyn("TRAWL_LOG_LEVEL"), "value": dyn({{ .logLevel | toRawJson }})}), dyn({"name": dyn("TRAWL_DATA"), "value": dyn("/scratch")}), dyn({"name": dyn("HOME"), "value": dyn("/scratch")}), dyn({"name": dyn("TMPDIR"), "value": dyn("/scratch")}), dyn({"name": dyn("XDG_CACHE_HOME"), "value": dyn("/scratch/cache")}), dyn({"name": dyn("TRAWL_TERMINATION_FILE"), "value": dyn("/dev/termination-log")})]))
{{- end }}
{{- end }}
{{- end }}
- message: |-
    trawl: only the resources of workers
  expression: |-
    (has(variables.worker.resources) && (variables.worker.resources.size() == 2 && "requests" in variables.worker.resources && variables.worker.resources["requests"].size() == 3 && "cpu" in variables.worker.resources["requests"] && quantity(variables.worker.resources["requests"]["cpu"]).compareTo(quantity({{ .cpu | toRawJson }})) == 0 && "memory" in variables.worker.resources["requests"] && quantity(variables.worker.resources["requests"]["memory"]).compareTo(quantity({{ .memory | toRawJson }})) == 0 && "ephemeral-storage" in variables.worker.resources["requests"] && quantity(variables.worker.resources["requests"]["ephemeral-storage"]).compareTo(quantity("1073741824")) == 0 && "limits" in variables.worker.resources && variables.worker.resources["limits"].size() == 2 && "memory" in variables.worker.resources["limits"] && quantity(variables.worker.resources["limits"]["memory"]).compareTo(quantity({{ .memory | toRawJson }})) == 0 && "ephemeral-storage" in variables.worker.resources["limits"] && quantity(variables.worker.resources["limits"]["ephemeral-storage"]).compareTo(quantity("{{ add (int64 .diskBytes) 1073741824 }}")) == 0{{ range .resources }} || {{ include "trawl.areResources" . }}{{ end }}))
{{- if .clusterUser }}
- message: |-
    trawl: only the securityContext of workers
  expression: |-
    (has(variables.worker.securityContext)) && (variables.worker.securityContext.all(f, f in [dyn("allowPrivilegeEscalation"), dyn("privileged"), dyn("readOnlyRootFilesystem"), dyn("capabilities"), dyn("runAsUser"), dyn("runAsNonRoot"), dyn("seLinuxOptions")])) && (variables.worker.securityContext[?"allowPrivilegeEscalation"] == optional.of(false)) && (variables.worker.securityContext[?"privileged"] == optional.of(false)) && (variables.worker.securityContext[?"readOnlyRootFilesystem"] == optional.of(true)) && (variables.worker.securityContext[?"capabilities"] == optional.of({"drop": dyn([dyn("ALL")])})) && (variables.worker.securityContext.?runAsUser.orValue(1) > 0) && (variables.worker.securityContext.?runAsNonRoot.orValue(true)) && (variables.worker.securityContext.?seLinuxOptions.orValue({}).all(f, f == 'level'))
{{- else }}
- message: |-
    trawl: only the securityContext of workers
  expression: |-
    (has(variables.worker.securityContext) && (variables.worker.securityContext == {"allowPrivilegeEscalation": dyn(false), "privileged": dyn(false), "readOnlyRootFilesystem": dyn(true), "capabilities": dyn({"drop": dyn([dyn("ALL")])})}))
{{- end }}
- message: |-
    trawl: only the terminationMessagePath of workers
  expression: |-
    (has(variables.worker.terminationMessagePath) && (variables.worker.terminationMessagePath == "/dev/termination-log"))
- message: |-
    trawl: only the terminationMessagePolicy of workers
  expression: |-
    (has(variables.worker.terminationMessagePolicy) && (variables.worker.terminationMessagePolicy == "File"))
{{- if .caConfigMap }}
- message: |-
    trawl: only the volumeMounts of workers
  expression: |-
    (has(variables.worker.volumeMounts) && (variables.worker.volumeMounts == [dyn({"name": dyn("work"), "mountPath": dyn("/scratch")}), dyn({"name": dyn("identity"), "mountPath": dyn("/var/run/trawl"), "readOnly": dyn(true)}), dyn({"name": dyn("authorities"), "mountPath": dyn("/var/run/trawl-ca"), "readOnly": dyn(true)})]))
{{- else }}
- message: |-
    trawl: only the volumeMounts of workers
  expression: |-
    (has(variables.worker.volumeMounts) && (variables.worker.volumeMounts == [dyn({"name": dyn("work"), "mountPath": dyn("/scratch")}), dyn({"name": dyn("identity"), "mountPath": dyn("/var/run/trawl"), "readOnly": dyn(true)})]))
{{- end }}
- message: |-
    trawl: workers have no other fields
  messageExpression: |-
    'trawl: workers have no ' + variables.worker.filter(f, !(f in [dyn("name"), dyn("imagePullPolicy"), dyn("args"), dyn("env"), dyn("resources"), dyn("securityContext"), dyn("terminationMessagePath"), dyn("terminationMessagePolicy"), dyn("volumeMounts"), dyn("image")])).join(', ')
  expression: |-
    variables.worker.all(f, f in [dyn("name"), dyn("imagePullPolicy"), dyn("args"), dyn("env"), dyn("resources"), dyn("securityContext"), dyn("terminationMessagePath"), dyn("terminationMessagePolicy"), dyn("volumeMounts"), dyn("image")])
- message: |-
    trawl: only the activeDeadlineSeconds of workers
  expression: |-
    (variables.pod.?activeDeadlineSeconds.orValue(2147483648) <= {{ add (int64 .maxSeconds) 3600 }})
- message: |-
    trawl: only the nodeSelector of workers
  expression: |-
    (variables.pod.?nodeSelector.orValue({}) == {{ include "trawl.cel" .nodeSelector }})
- message: |-
    trawl: only the affinity of workers
  expression: |-
    (variables.pod.?affinity.orValue({}) == {{ include "trawl.cel" .affinity }})
{{- if .priorityClass }}
- message: |-
    trawl: only the priorityClassName of workers
  expression: |-
    (has(variables.pod.priorityClassName)) && (variables.pod.priorityClassName == {{ .priorityClass | toRawJson }})
{{- else }}
- message: |-
    trawl: only the priorityClassName of workers
  expression: |-
    (request.kind.kind != 'Job' || !has(variables.pod.priorityClassName))
{{- end }}
- message: |-
    trawl: only the restartPolicy of workers
  expression: |-
    (has(variables.pod.restartPolicy) && (variables.pod.restartPolicy == "Never"))
- message: |-
    trawl: only the terminationGracePeriodSeconds of workers
  expression: |-
    (has(variables.pod.terminationGracePeriodSeconds) && (variables.pod.terminationGracePeriodSeconds == 60))
- message: |-
    trawl: only the serviceAccountName of workers
  expression: |-
    (has(variables.pod.serviceAccountName) && (variables.pod.serviceAccountName == {{ .account | toRawJson }}))
- message: |-
    trawl: only the automountServiceAccountToken of workers
  expression: |-
    (has(variables.pod.automountServiceAccountToken) && (variables.pod.automountServiceAccountToken == false))
- message: |-
    trawl: only the enableServiceLinks of workers
  expression: |-
    (has(variables.pod.enableServiceLinks) && (variables.pod.enableServiceLinks == false))
{{- if .hostUsers }}
- message: |-
    trawl: only the hostUsers of workers
  expression: |-
    (!has(variables.pod.hostUsers) || (variables.pod.hostUsers == true))
{{- else }}
- message: |-
    trawl: only the hostUsers of workers
  expression: |-
    (has(variables.pod.hostUsers) && (variables.pod.hostUsers == false))
{{- end }}
{{- if .runtimeClass }}
- message: |-
    trawl: only the runtimeClassName of workers
  expression: |-
    (has(variables.pod.runtimeClassName) && (variables.pod.runtimeClassName == {{ .runtimeClass | toRawJson }}))
{{- end }}
- message: |-
    trawl: only the dnsPolicy of workers
  expression: |-
    (!has(variables.pod.dnsPolicy) || (variables.pod.dnsPolicy == {{ .dnsPolicy | toRawJson }}))
- message: |-
    trawl: only the dnsConfig of workers
  expression: |-
    (has(variables.pod.dnsConfig) && (variables.pod.dnsConfig == {{ include "trawl.cel" .dnsConfig }}))
- message: |-
    trawl: only the tolerations of workers
  expression: |-
    (has(variables.pod.tolerations) && (variables.pod.tolerations == [dyn({"key": dyn("node.kubernetes.io/not-ready"), "operator": dyn("Exists"), "effect": dyn("NoExecute"), "tolerationSeconds": dyn({{ int64 .awaySeconds }})}), dyn({"key": dyn("node.kubernetes.io/unreachable"), "operator": dyn("Exists"), "effect": dyn("NoExecute"), "tolerationSeconds": dyn({{ int64 .awaySeconds }})}){{ range .tolerations }}, dyn({{ include "trawl.cel" . }}){{ end }}]))
- message: |-
    trawl: only the topologySpreadConstraints of workers
  expression: |-
    (has(variables.pod.topologySpreadConstraints) && (variables.pod.topologySpreadConstraints == [dyn({"maxSkew": dyn(5), "topologyKey": dyn("kubernetes.io/hostname"), "whenUnsatisfiable": dyn("ScheduleAnyway"), "labelSelector": dyn({"matchLabels": dyn({"app.kubernetes.io/managed-by": dyn("trawl"), "app.kubernetes.io/component": dyn("worker")})})})]))
{{- if .clusterUser }}
- message: |-
    trawl: only the securityContext of workers
  expression: |-
    (has(variables.pod.securityContext)) && (variables.pod.securityContext.all(f, f in [dyn("runAsNonRoot"), dyn("seccompProfile"), dyn("fsGroup"), dyn("supplementalGroups"), dyn("seLinuxOptions")])) && (variables.pod.securityContext[?"runAsNonRoot"] == optional.of(true)) && (variables.pod.securityContext[?"seccompProfile"] == optional.of({"type": dyn("RuntimeDefault")})) && (variables.pod.securityContext.?runAsUser.orValue(1) > 0) && (variables.pod.securityContext.?runAsNonRoot.orValue(true)) && (variables.pod.securityContext.?seLinuxOptions.orValue({}).all(f, f == 'level')) && (variables.pod.securityContext.?fsGroup.orValue(1) > 0) && (variables.pod.securityContext.?supplementalGroups.orValue([]).all(g, g > 0))
{{- else }}
- message: |-
    trawl: only the securityContext of workers
  expression: |-
    (has(variables.pod.securityContext) && (variables.pod.securityContext == {"runAsNonRoot": dyn(true), "runAsUser": dyn(65532), "runAsGroup": dyn(65532), "fsGroup": dyn(65532), "fsGroupChangePolicy": dyn("OnRootMismatch"), "seccompProfile": dyn({"type": dyn("RuntimeDefault")})}))
{{- end }}
{{- if .caConfigMap }}
- message: |-
    trawl: only the volumes of workers
  expression: |-
    (has(variables.pod.volumes) && (variables.pod.volumes.size() == 3 && variables.pod.volumes[0].size() == 2 && "name" in variables.pod.volumes[0] && variables.pod.volumes[0]["name"] == "work" && "emptyDir" in variables.pod.volumes[0] && variables.pod.volumes[0]["emptyDir"].size() == 1 && "sizeLimit" in variables.pod.volumes[0]["emptyDir"] && quantity(variables.pod.volumes[0]["emptyDir"]["sizeLimit"]).compareTo(quantity("{{ int64 .diskBytes }}")) == 0 && variables.pod.volumes[1] == {"name": dyn("identity"), "projected": dyn({"defaultMode": dyn(288), "sources": dyn([dyn({"serviceAccountToken": dyn({"audience": dyn("trawl-gateway"), "expirationSeconds": dyn(3600), "path": dyn("token")})})])})} && variables.pod.volumes[2] == {"name": dyn("authorities"), "configMap": dyn({"name": dyn({{ .caConfigMap | toRawJson }}), "defaultMode": dyn(288), "items": dyn([dyn({"key": dyn("ca.crt"), "path": dyn("ca.crt")})])})}))
{{- else }}
- message: |-
    trawl: only the volumes of workers
  expression: |-
    (has(variables.pod.volumes) && (variables.pod.volumes.size() == 2 && variables.pod.volumes[0].size() == 2 && "name" in variables.pod.volumes[0] && variables.pod.volumes[0]["name"] == "work" && "emptyDir" in variables.pod.volumes[0] && variables.pod.volumes[0]["emptyDir"].size() == 1 && "sizeLimit" in variables.pod.volumes[0]["emptyDir"] && quantity(variables.pod.volumes[0]["emptyDir"]["sizeLimit"]).compareTo(quantity("{{ int64 .diskBytes }}")) == 0 && variables.pod.volumes[1] == {"name": dyn("identity"), "projected": dyn({"defaultMode": dyn(288), "sources": dyn([dyn({"serviceAccountToken": dyn({"audience": dyn("trawl-gateway"), "expirationSeconds": dyn(3600), "path": dyn("token")})})])})}))
{{- end }}
- message: |-
    trawl: only the schedulerName of workers
  expression: |-
    (!has(variables.pod.schedulerName) || (variables.pod.schedulerName == "default-scheduler"))
- message: |-
    trawl: only the serviceAccount of workers
  expression: |-
    (!has(variables.pod.serviceAccount) || (variables.pod.serviceAccount == {{ .account | toRawJson }}))
{{- if .pullSecrets }}
{{- if .clusterUser }}
- message: |-
    trawl: only the imagePullSecrets of workers
  expression: |-
    (variables.pod.?imagePullSecrets.orValue([]).all(s, s.name.startsWith({{ .account | toRawJson }} + '-dockercfg-') || s in [{{ include "trawl.dynNames" .pullSecrets }}]))
{{- else }}
- message: |-
    trawl: only the imagePullSecrets of workers
  expression: |-
    (!has(variables.pod.imagePullSecrets) || (variables.pod.imagePullSecrets == [{{ include "trawl.dynNames" .pullSecrets }}]))
{{- end }}
{{- else }}
{{- if .clusterUser }}
- message: |-
    trawl: only the imagePullSecrets of workers
  expression: |-
    (variables.pod.?imagePullSecrets.orValue([]).all(s, s.name.startsWith({{ .account | toRawJson }} + '-dockercfg-') || s in []))
{{- end }}
{{- end }}
{{- if .runtimeClass }}
{{- if .pullSecrets }}
- message: |-
    trawl: workers have no other fields
  messageExpression: |-
    'trawl: workers have no ' + variables.pod.filter(f, !(f in [dyn("restartPolicy"), dyn("terminationGracePeriodSeconds"), dyn("serviceAccountName"), dyn("automountServiceAccountToken"), dyn("enableServiceLinks"), dyn("hostUsers"), dyn("runtimeClassName"), dyn("dnsPolicy"), dyn("dnsConfig"), dyn("tolerations"), dyn("topologySpreadConstraints"), dyn("securityContext"), dyn("volumes"), dyn("schedulerName"), dyn("serviceAccount"), dyn("imagePullSecrets"), dyn("containers"), dyn("activeDeadlineSeconds"), dyn("nodeSelector"), dyn("affinity"), dyn("priorityClassName"), dyn("priority"), dyn("preemptionPolicy"), dyn("overhead")])).join(', ')
  expression: |-
    variables.pod.all(f, f in [dyn("restartPolicy"), dyn("terminationGracePeriodSeconds"), dyn("serviceAccountName"), dyn("automountServiceAccountToken"), dyn("enableServiceLinks"), dyn("hostUsers"), dyn("runtimeClassName"), dyn("dnsPolicy"), dyn("dnsConfig"), dyn("tolerations"), dyn("topologySpreadConstraints"), dyn("securityContext"), dyn("volumes"), dyn("schedulerName"), dyn("serviceAccount"), dyn("imagePullSecrets"), dyn("containers"), dyn("activeDeadlineSeconds"), dyn("nodeSelector"), dyn("affinity"), dyn("priorityClassName"), dyn("priority"), dyn("preemptionPolicy"), dyn("overhead")])
{{- else }}
{{- if .clusterUser }}
- message: |-
    trawl: workers have no other fields
  messageExpression: |-
    'trawl: workers have no ' + variables.pod.filter(f, !(f in [dyn("restartPolicy"), dyn("terminationGracePeriodSeconds"), dyn("serviceAccountName"), dyn("automountServiceAccountToken"), dyn("enableServiceLinks"), dyn("hostUsers"), dyn("runtimeClassName"), dyn("dnsPolicy"), dyn("dnsConfig"), dyn("tolerations"), dyn("topologySpreadConstraints"), dyn("securityContext"), dyn("volumes"), dyn("schedulerName"), dyn("serviceAccount"), dyn("imagePullSecrets"), dyn("containers"), dyn("activeDeadlineSeconds"), dyn("nodeSelector"), dyn("affinity"), dyn("priorityClassName"), dyn("priority"), dyn("preemptionPolicy"), dyn("overhead")])).join(', ')
  expression: |-
    variables.pod.all(f, f in [dyn("restartPolicy"), dyn("terminationGracePeriodSeconds"), dyn("serviceAccountName"), dyn("automountServiceAccountToken"), dyn("enableServiceLinks"), dyn("hostUsers"), dyn("runtimeClassName"), dyn("dnsPolicy"), dyn("dnsConfig"), dyn("tolerations"), dyn("topologySpreadConstraints"), dyn("securityContext"), dyn("volumes"), dyn("schedulerName"), dyn("serviceAccount"), dyn("imagePullSecrets"), dyn("containers"), dyn("activeDeadlineSeconds"), dyn("nodeSelector"), dyn("affinity"), dyn("priorityClassName"), dyn("priority"), dyn("preemptionPolicy"), dyn("overhead")])
{{- else }}
- message: |-
    trawl: workers have no other fields
  messageExpression: |-
    'trawl: workers have no ' + variables.pod.filter(f, !(f in [dyn("restartPolicy"), dyn("terminationGracePeriodSeconds"), dyn("serviceAccountName"), dyn("automountServiceAccountToken"), dyn("enableServiceLinks"), dyn("hostUsers"), dyn("runtimeClassName"), dyn("dnsPolicy"), dyn("dnsConfig"), dyn("tolerations"), dyn("topologySpreadConstraints"), dyn("securityContext"), dyn("volumes"), dyn("schedulerName"), dyn("serviceAccount"), dyn("containers"), dyn("activeDeadlineSeconds"), dyn("nodeSelector"), dyn("affinity"), dyn("priorityClassName"), dyn("priority"), dyn("preemptionPolicy"), dyn("overhead")])).join(', ')
  expression: |-
    variables.pod.all(f, f in [dyn("restartPolicy"), dyn("terminationGracePeriodSeconds"), dyn("serviceAccountName"), dyn("automountServiceAccountToken"), dyn("enableServiceLinks"), dyn("hostUsers"), dyn("runtimeClassName"), dyn("dnsPolicy"), dyn("dnsConfig"), dyn("tolerations"), dyn("topologySpreadConstraints"), dyn("securityContext"), dyn("volumes"), dyn("schedulerName"), dyn("serviceAccount"), dyn("containers"), dyn("activeDeadlineSeconds"), dyn("nodeSelector"), dyn("affinity"), dyn("priorityClassName"), dyn("priority"), dyn("preemptionPolicy"), dyn("overhead")])
{{- end }}
{{- end }}
{{- else }}
{{- if .pullSecrets }}
- message: |-
    trawl: workers have no other fields
  messageExpression: |-
    'trawl: workers have no ' + variables.pod.filter(f, !(f in [dyn("restartPolicy"), dyn("terminationGracePeriodSeconds"), dyn("serviceAccountName"), dyn("automountServiceAccountToken"), dyn("enableServiceLinks"), dyn("hostUsers"), dyn("dnsPolicy"), dyn("dnsConfig"), dyn("tolerations"), dyn("topologySpreadConstraints"), dyn("securityContext"), dyn("volumes"), dyn("schedulerName"), dyn("serviceAccount"), dyn("imagePullSecrets"), dyn("containers"), dyn("activeDeadlineSeconds"), dyn("nodeSelector"), dyn("affinity"), dyn("priorityClassName"), dyn("priority"), dyn("preemptionPolicy")])).join(', ')
  expression: |-
    variables.pod.all(f, f in [dyn("restartPolicy"), dyn("terminationGracePeriodSeconds"), dyn("serviceAccountName"), dyn("automountServiceAccountToken"), dyn("enableServiceLinks"), dyn("hostUsers"), dyn("dnsPolicy"), dyn("dnsConfig"), dyn("tolerations"), dyn("topologySpreadConstraints"), dyn("securityContext"), dyn("volumes"), dyn("schedulerName"), dyn("serviceAccount"), dyn("imagePullSecrets"), dyn("containers"), dyn("activeDeadlineSeconds"), dyn("nodeSelector"), dyn("affinity"), dyn("priorityClassName"), dyn("priority"), dyn("preemptionPolicy")])
{{- else }}
{{- if .clusterUser }}
- message: |-
    trawl: workers have no other fields
  messageExpression: |-
    'trawl: workers have no ' + variables.pod.filter(f, !(f in [dyn("restartPolicy"), dyn("terminationGracePeriodSeconds"), dyn("serviceAccountName"), dyn("automountServiceAccountToken"), dyn("enableServiceLinks"), dyn("hostUsers"), dyn("dnsPolicy"), dyn("dnsConfig"), dyn("tolerations"), dyn("topologySpreadConstraints"), dyn("securityContext"), dyn("volumes"), dyn("schedulerName"), dyn("serviceAccount"), dyn("imagePullSecrets"), dyn("containers"), dyn("activeDeadlineSeconds"), dyn("nodeSelector"), dyn("affinity"), dyn("priorityClassName"), dyn("priority"), dyn("preemptionPolicy")])).join(', ')
  expression: |-
    variables.pod.all(f, f in [dyn("restartPolicy"), dyn("terminationGracePeriodSeconds"), dyn("serviceAccountName"), dyn("automountServiceAccountToken"), dyn("enableServiceLinks"), dyn("hostUsers"), dyn("dnsPolicy"), dyn("dnsConfig"), dyn("tolerations"), dyn("topologySpreadConstraints"), dyn("securityContext"), dyn("volumes"), dyn("schedulerName"), dyn("serviceAccount"), dyn("imagePullSecrets"), dyn("containers"), dyn("activeDeadlineSeconds"), dyn("nodeSelector"), dyn("affinity"), dyn("priorityClassName"), dyn("priority"), dyn("preemptionPolicy")])
{{- else }}
- message: |-
    trawl: workers have no other fields
  messageExpression: |-
    'trawl: workers have no ' + variables.pod.filter(f, !(f in [dyn("restartPolicy"), dyn("terminationGracePeriodSeconds"), dyn("serviceAccountName"), dyn("automountServiceAccountToken"), dyn("enableServiceLinks"), dyn("hostUsers"), dyn("dnsPolicy"), dyn("dnsConfig"), dyn("tolerations"), dyn("topologySpreadConstraints"), dyn("securityContext"), dyn("volumes"), dyn("schedulerName"), dyn("serviceAccount"), dyn("containers"), dyn("activeDeadlineSeconds"), dyn("nodeSelector"), dyn("affinity"), dyn("priorityClassName"), dyn("priority"), dyn("preemptionPolicy")])).join(', ')
  expression: |-
    variables.pod.all(f, f in [dyn("restartPolicy"), dyn("terminationGracePeriodSeconds"), dyn("serviceAccountName"), dyn("automountServiceAccountToken"), dyn("enableServiceLinks"), dyn("hostUsers"), dyn("dnsPolicy"), dyn("dnsConfig"), dyn("tolerations"), dyn("topologySpreadConstraints"), dyn("securityContext"), dyn("volumes"), dyn("schedulerName"), dyn("serviceAccount"), dyn("containers"), dyn("activeDeadlineSeconds"), dyn("nodeSelector"), dyn("affinity"), dyn("priorityClassName"), dyn("priority"), dyn("preemptionPolicy")])
{{- end }}
{{- end }}
{{- end }}
{{- if .queue }}
{{- if .clusterUser }}
- message: |-
    trawl: only the labels of workers
  expression: |-
    (variables.marks.?labels.orValue({})[?"app.kubernetes.io/name"].orValue('') == "trawl-worker") && (variables.marks.?labels.orValue({})[?"app.kubernetes.io/managed-by"].orValue('') == "trawl") && (variables.marks.?labels.orValue({})[?"app.kubernetes.io/component"].orValue('') == "worker") && ("trawl/job" in variables.marks.?labels.orValue({})) && (variables.marks.?labels.orValue({}).all(k, k in [dyn("app.kubernetes.io/name"), dyn("app.kubernetes.io/managed-by"), dyn("app.kubernetes.io/component"), dyn("trawl/job"), {{ with .marks }}{{ include "trawl.dyns" . }}, {{ end }}dyn("openshift.io/scc"), dyn("openshift.io/required-scc"), dyn("security.openshift.io/validated-scc-subject-type"), dyn("seccomp.security.alpha.kubernetes.io/pod"), dyn("controller-uid"), dyn("batch.kubernetes.io/controller-uid"), dyn("job-name"), dyn("batch.kubernetes.io/job-name")] || k.contains("kueue.x-k8s.io/")))
{{- else }}
- message: |-
    trawl: only the labels of workers
  expression: |-
    (variables.marks.?labels.orValue({})[?"app.kubernetes.io/name"].orValue('') == "trawl-worker") && (variables.marks.?labels.orValue({})[?"app.kubernetes.io/managed-by"].orValue('') == "trawl") && (variables.marks.?labels.orValue({})[?"app.kubernetes.io/component"].orValue('') == "worker") && ("trawl/job" in variables.marks.?labels.orValue({})) && (variables.marks.?labels.orValue({}).all(k, k in [dyn("app.kubernetes.io/name"), dyn("app.kubernetes.io/managed-by"), dyn("app.kubernetes.io/component"), dyn("trawl/job"), {{ with .marks }}{{ include "trawl.dyns" . }}, {{ end }}dyn("controller-uid"), dyn("batch.kubernetes.io/controller-uid"), dyn("job-name"), dyn("batch.kubernetes.io/job-name")] || k.contains("kueue.x-k8s.io/")))
{{- end }}
{{- else }}
{{- if .clusterUser }}
- message: |-
    trawl: only the labels of workers
  expression: |-
    (variables.marks.?labels.orValue({})[?"app.kubernetes.io/name"].orValue('') == "trawl-worker") && (variables.marks.?labels.orValue({})[?"app.kubernetes.io/managed-by"].orValue('') == "trawl") && (variables.marks.?labels.orValue({})[?"app.kubernetes.io/component"].orValue('') == "worker") && ("trawl/job" in variables.marks.?labels.orValue({})) && (variables.marks.?labels.orValue({}).all(k, k in [dyn("app.kubernetes.io/name"), dyn("app.kubernetes.io/managed-by"), dyn("app.kubernetes.io/component"), dyn("trawl/job"), {{ with .marks }}{{ include "trawl.dyns" . }}, {{ end }}dyn("openshift.io/scc"), dyn("openshift.io/required-scc"), dyn("security.openshift.io/validated-scc-subject-type"), dyn("seccomp.security.alpha.kubernetes.io/pod"), dyn("controller-uid"), dyn("batch.kubernetes.io/controller-uid"), dyn("job-name"), dyn("batch.kubernetes.io/job-name")]))
{{- else }}
- message: |-
    trawl: only the labels of workers
  expression: |-
    (variables.marks.?labels.orValue({})[?"app.kubernetes.io/name"].orValue('') == "trawl-worker") && (variables.marks.?labels.orValue({})[?"app.kubernetes.io/managed-by"].orValue('') == "trawl") && (variables.marks.?labels.orValue({})[?"app.kubernetes.io/component"].orValue('') == "worker") && ("trawl/job" in variables.marks.?labels.orValue({})) && (variables.marks.?labels.orValue({}).all(k, k in [dyn("app.kubernetes.io/name"), dyn("app.kubernetes.io/managed-by"), dyn("app.kubernetes.io/component"), dyn("trawl/job"), {{ with .marks }}{{ include "trawl.dyns" . }}, {{ end }}dyn("controller-uid"), dyn("batch.kubernetes.io/controller-uid"), dyn("job-name"), dyn("batch.kubernetes.io/job-name")]))
{{- end }}
{{- end }}
{{- if .queue }}
{{- if .clusterUser }}
- message: |-
    trawl: only the annotations of workers
  expression: |-
    (variables.marks.?annotations.orValue({})[?"cluster-autoscaler.kubernetes.io/safe-to-evict"].orValue('') == "false") && (variables.marks.?annotations.orValue({})[?"karpenter.sh/do-not-disrupt"].orValue('') == "true") && (variables.marks.?annotations.orValue({}).all(k, k in [dyn("cluster-autoscaler.kubernetes.io/safe-to-evict"), dyn("karpenter.sh/do-not-disrupt"), {{ with .marks }}{{ include "trawl.dyns" . }}, {{ end }}dyn("openshift.io/scc"), dyn("openshift.io/required-scc"), dyn("security.openshift.io/validated-scc-subject-type"), dyn("seccomp.security.alpha.kubernetes.io/pod")] || k.contains("kueue.x-k8s.io/")))
{{- else }}
- message: |-
    trawl: only the annotations of workers
  expression: |-
    (variables.marks.?annotations.orValue({})[?"cluster-autoscaler.kubernetes.io/safe-to-evict"].orValue('') == "false") && (variables.marks.?annotations.orValue({})[?"karpenter.sh/do-not-disrupt"].orValue('') == "true") && (variables.marks.?annotations.orValue({}).all(k, k in [dyn("cluster-autoscaler.kubernetes.io/safe-to-evict"), dyn("karpenter.sh/do-not-disrupt"){{ with .marks }}, {{ include "trawl.dyns" . }}{{ end }}] || k.contains("kueue.x-k8s.io/")))
{{- end }}
{{- else }}
{{- if .clusterUser }}
- message: |-
    trawl: only the annotations of workers
  expression: |-
    (variables.marks.?annotations.orValue({})[?"cluster-autoscaler.kubernetes.io/safe-to-evict"].orValue('') == "false") && (variables.marks.?annotations.orValue({})[?"karpenter.sh/do-not-disrupt"].orValue('') == "true") && (variables.marks.?annotations.orValue({}).all(k, k in [dyn("cluster-autoscaler.kubernetes.io/safe-to-evict"), dyn("karpenter.sh/do-not-disrupt"), {{ with .marks }}{{ include "trawl.dyns" . }}, {{ end }}dyn("openshift.io/scc"), dyn("openshift.io/required-scc"), dyn("security.openshift.io/validated-scc-subject-type"), dyn("seccomp.security.alpha.kubernetes.io/pod")]))
{{- else }}
- message: |-
    trawl: only the annotations of workers
  expression: |-
    (variables.marks.?annotations.orValue({})[?"cluster-autoscaler.kubernetes.io/safe-to-evict"].orValue('') == "false") && (variables.marks.?annotations.orValue({})[?"karpenter.sh/do-not-disrupt"].orValue('') == "true") && (variables.marks.?annotations.orValue({}).all(k, k in [dyn("cluster-autoscaler.kubernetes.io/safe-to-evict"), dyn("karpenter.sh/do-not-disrupt"){{ with .marks }}, {{ include "trawl.dyns" . }}{{ end }}]))
{{- end }}
{{- end }}
- message: |-
    trawl: only the finalizers of workers
  expression: |-
    (variables.marks.?finalizers.orValue([]).all(f, f in [dyn("trawl/unsettled"), dyn("batch.kubernetes.io/job-tracking")]))
{{- if .queue }}
{{- if .clusterUser }}
- message: |-
    trawl: only the labels of workers
  expression: |-
    request.kind.kind != 'Job' || ((object.metadata.?labels.orValue({})[?"app.kubernetes.io/name"].orValue('') == "trawl-worker") && (object.metadata.?labels.orValue({})[?"app.kubernetes.io/managed-by"].orValue('') == "trawl") && (object.metadata.?labels.orValue({})[?"app.kubernetes.io/component"].orValue('') == "worker") && ("trawl/job" in object.metadata.?labels.orValue({})) && (object.metadata.?labels.orValue({})[?"kueue.x-k8s.io/queue-name"].orValue('') == {{ .queue | toRawJson }}) && (object.metadata.?labels.orValue({}).all(k, k in [dyn("app.kubernetes.io/name"), dyn("app.kubernetes.io/managed-by"), dyn("app.kubernetes.io/component"), dyn("trawl/job"), dyn("kueue.x-k8s.io/queue-name"), {{ with .marks }}{{ include "trawl.dyns" . }}, {{ end }}dyn("openshift.io/scc"), dyn("openshift.io/required-scc"), dyn("security.openshift.io/validated-scc-subject-type"), dyn("seccomp.security.alpha.kubernetes.io/pod"), dyn("controller-uid"), dyn("batch.kubernetes.io/controller-uid"), dyn("job-name"), dyn("batch.kubernetes.io/job-name")] || k.contains("kueue.x-k8s.io/"))))
{{- else }}
- message: |-
    trawl: only the labels of workers
  expression: |-
    request.kind.kind != 'Job' || ((object.metadata.?labels.orValue({})[?"app.kubernetes.io/name"].orValue('') == "trawl-worker") && (object.metadata.?labels.orValue({})[?"app.kubernetes.io/managed-by"].orValue('') == "trawl") && (object.metadata.?labels.orValue({})[?"app.kubernetes.io/component"].orValue('') == "worker") && ("trawl/job" in object.metadata.?labels.orValue({})) && (object.metadata.?labels.orValue({})[?"kueue.x-k8s.io/queue-name"].orValue('') == {{ .queue | toRawJson }}) && (object.metadata.?labels.orValue({}).all(k, k in [dyn("app.kubernetes.io/name"), dyn("app.kubernetes.io/managed-by"), dyn("app.kubernetes.io/component"), dyn("trawl/job"), dyn("kueue.x-k8s.io/queue-name"), {{ with .marks }}{{ include "trawl.dyns" . }}, {{ end }}dyn("controller-uid"), dyn("batch.kubernetes.io/controller-uid"), dyn("job-name"), dyn("batch.kubernetes.io/job-name")] || k.contains("kueue.x-k8s.io/"))))
{{- end }}
{{- else }}
{{- if .clusterUser }}
- message: |-
    trawl: only the labels of workers
  expression: |-
    request.kind.kind != 'Job' || ((object.metadata.?labels.orValue({})[?"app.kubernetes.io/name"].orValue('') == "trawl-worker") && (object.metadata.?labels.orValue({})[?"app.kubernetes.io/managed-by"].orValue('') == "trawl") && (object.metadata.?labels.orValue({})[?"app.kubernetes.io/component"].orValue('') == "worker") && ("trawl/job" in object.metadata.?labels.orValue({})) && (object.metadata.?labels.orValue({}).all(k, k in [dyn("app.kubernetes.io/name"), dyn("app.kubernetes.io/managed-by"), dyn("app.kubernetes.io/component"), dyn("trawl/job"), {{ with .marks }}{{ include "trawl.dyns" . }}, {{ end }}dyn("openshift.io/scc"), dyn("openshift.io/required-scc"), dyn("security.openshift.io/validated-scc-subject-type"), dyn("seccomp.security.alpha.kubernetes.io/pod"), dyn("controller-uid"), dyn("batch.kubernetes.io/controller-uid"), dyn("job-name"), dyn("batch.kubernetes.io/job-name")])))
{{- else }}
- message: |-
    trawl: only the labels of workers
  expression: |-
    request.kind.kind != 'Job' || ((object.metadata.?labels.orValue({})[?"app.kubernetes.io/name"].orValue('') == "trawl-worker") && (object.metadata.?labels.orValue({})[?"app.kubernetes.io/managed-by"].orValue('') == "trawl") && (object.metadata.?labels.orValue({})[?"app.kubernetes.io/component"].orValue('') == "worker") && ("trawl/job" in object.metadata.?labels.orValue({})) && (object.metadata.?labels.orValue({}).all(k, k in [dyn("app.kubernetes.io/name"), dyn("app.kubernetes.io/managed-by"), dyn("app.kubernetes.io/component"), dyn("trawl/job"), {{ with .marks }}{{ include "trawl.dyns" . }}, {{ end }}dyn("controller-uid"), dyn("batch.kubernetes.io/controller-uid"), dyn("job-name"), dyn("batch.kubernetes.io/job-name")])))
{{- end }}
{{- end }}
{{- if .queue }}
{{- if .clusterUser }}
- message: |-
    trawl: only the annotations of workers
  expression: |-
    request.kind.kind != 'Job' || ((object.metadata.?annotations.orValue({}).all(k, k in [{{ with .marks }}{{ include "trawl.dyns" . }}, {{ end }}dyn("openshift.io/scc"), dyn("openshift.io/required-scc"), dyn("security.openshift.io/validated-scc-subject-type"), dyn("seccomp.security.alpha.kubernetes.io/pod")] || k.contains("kueue.x-k8s.io/"))))
{{- else }}
- message: |-
    trawl: only the annotations of workers
  expression: |-
    request.kind.kind != 'Job' || ((object.metadata.?annotations.orValue({}).all(k, k in [{{ with .marks }}{{ include "trawl.dyns" . }}{{ end }}] || k.contains("kueue.x-k8s.io/"))))
{{- end }}
{{- else }}
{{- if .clusterUser }}
- message: |-
    trawl: only the annotations of workers
  expression: |-
    request.kind.kind != 'Job' || ((object.metadata.?annotations.orValue({}).all(k, k in [{{ with .marks }}{{ include "trawl.dyns" . }}, {{ end }}dyn("openshift.io/scc"), dyn("openshift.io/required-scc"), dyn("security.openshift.io/validated-scc-subject-type"), dyn("seccomp.security.alpha.kubernetes.io/pod")])))
{{- else }}
- message: |-
    trawl: only the annotations of workers
  expression: |-
    request.kind.kind != 'Job' || ((object.metadata.?annotations.orValue({}).all(k, k in [{{ with .marks }}{{ include "trawl.dyns" . }}{{ end }}])))
{{- end }}
{{- end }}
- message: |-
    trawl: only the activeDeadlineSeconds of worker Jobs
  expression: |-
    request.kind.kind != 'Job' || ((object.spec.?activeDeadlineSeconds.orValue(2147483648) <= {{ add (int64 .maxSeconds) 360003900 }}))
- message: |-
    trawl: only the ttlSecondsAfterFinished of worker Jobs
  expression: |-
    request.kind.kind != 'Job' || ((object.spec.?ttlSecondsAfterFinished.orValue(2147483648) <= 900))
- message: |-
    trawl: only the completions of worker Jobs
  expression: |-
    request.kind.kind != 'Job' || ((has(object.spec.completions) && (object.spec.completions == 1)))
- message: |-
    trawl: only the parallelism of worker Jobs
  expression: |-
    request.kind.kind != 'Job' || ((has(object.spec.parallelism) && (object.spec.parallelism == 1)))
- message: |-
    trawl: only the backoffLimit of worker Jobs
  expression: |-
    request.kind.kind != 'Job' || ((has(object.spec.backoffLimit) && (object.spec.backoffLimit == 0)))
- message: |-
    trawl: only the completionMode of worker Jobs
  expression: |-
    request.kind.kind != 'Job' || ((!has(object.spec.completionMode) || (object.spec.completionMode == "NonIndexed")))
- message: |-
    trawl: only the manualSelector of worker Jobs
  expression: |-
    request.kind.kind != 'Job' || ((!has(object.spec.manualSelector) || (object.spec.manualSelector == false)))
- message: |-
    trawl: only the podReplacementPolicy of worker Jobs
  expression: |-
    request.kind.kind != 'Job' || ((!has(object.spec.podReplacementPolicy) || (object.spec.podReplacementPolicy == "TerminatingOrFailed" || object.spec.podReplacementPolicy == "Failed")))
- message: |-
    trawl: only the suspend of worker Jobs
  expression: |-
    request.kind.kind != 'Job' || ((!has(object.spec.suspend) || (object.spec.suspend == false || object.spec.suspend == true)))
- message: |-
    trawl: worker Jobs have no other fields
  messageExpression: |-
    'trawl: worker Jobs have no ' + object.spec.filter(f, !(f in [dyn("completions"), dyn("parallelism"), dyn("backoffLimit"), dyn("completionMode"), dyn("manualSelector"), dyn("podReplacementPolicy"), dyn("suspend"), dyn("template"), dyn("activeDeadlineSeconds"), dyn("ttlSecondsAfterFinished"), dyn("selector")])).join(', ')
  expression: |-
    request.kind.kind != 'Job' || (object.spec.all(f, f in [dyn("completions"), dyn("parallelism"), dyn("backoffLimit"), dyn("completionMode"), dyn("manualSelector"), dyn("podReplacementPolicy"), dyn("suspend"), dyn("template"), dyn("activeDeadlineSeconds"), dyn("ttlSecondsAfterFinished"), dyn("selector")]))
{{- end }}
