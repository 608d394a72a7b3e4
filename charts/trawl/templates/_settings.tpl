{{- /* Written by src/admin/write-chart.ts out of src/base/settings; do not edit. */ -}}
{{- define "trawl.settingDefaults" -}}
TRAWL_DATA: "./data"
TRAWL_HOST: "127.0.0.1"
TRAWL_PORT: "8080"
TRAWL_GATEWAY_PORT: "8082"
TRAWL_PROBE_PORT: "9090"
TRAWL_PUBLIC_URL: null
TRAWL_SECRET: null
TRAWL_SECRET_OLD: null
TRAWL_TLS_CERT_FILE: null
TRAWL_TLS_KEY_FILE: null
TRAWL_TLS_CA_FILE: null
TRAWL_CLOCK_FILE: null
TRAWL_LOG_LEVEL: "info"
TRAWL_LOG_FORMAT: "auto"
TRAWL_TRACES_URL: null
TRAWL_ASYNC_STATUS: "202"
TRAWL_KEY_QUOTA_STATUS: "401"
TRAWL_TRUSTED_PROXIES: ""
TRAWL_AUTH_FAILURES: "20"
TRAWL_AUTH_WINDOW: "600"
TRAWL_AUTH_BLOCK: "900"
TRAWL_REDIS_URL: null
TRAWL_REDIS_MEMORY: null
TRAWL_DURABILITY: "strict"
TRAWL_JOB_DAYS: "30"
TRAWL_LOG_DAYS: "90"
TRAWL_LOG_LINES: "10000"
TRAWL_OBJECTS: "folder"
TRAWL_S3_BUCKET: null
TRAWL_S3_ENDPOINT: null
TRAWL_S3_PUBLIC_ENDPOINT: null
TRAWL_S3_REGION: null
TRAWL_S3_PATH_STYLE: "false"
TRAWL_FILE_HOURS: "24"
TRAWL_BACKUPS_SCHEDULED: "false"
TRAWL_RUNNER: "process"
TRAWL_WORKERS: "cores"
TRAWL_RESERVED_WORKERS: "1"
TRAWL_PREEMPT_SECONDS: "30"
TRAWL_SANDBOX: "auto"
TRAWL_CGROUP: null
TRAWL_YTDLP_PLUGINS: ""
TRAWL_COOKIES: null
TRAWL_GATEWAY_ADDRESS: null
TRAWL_EGRESS_ADDRESS: null
TRAWL_INSPECTOR_ADDRESS: null
TRAWL_TERMINATION_FILE: null
TRAWL_KUBE_NAMESPACE: null
TRAWL_KUBE_RATE: "200"
TRAWL_WORKER_IMAGE: null
TRAWL_WORKER_ACCOUNT: "trawl-worker"
TRAWL_WORKER_CPU: "250m"
TRAWL_WORKER_MEMORY: "3Gi"
TRAWL_WORKER_AWAY_SECONDS: "60"
TRAWL_WORKER_START_SECONDS: "180"
TRAWL_WORKER_PLACEMENT: "{}"
TRAWL_WORKER_RUNTIME_CLASS: null
TRAWL_WORKER_PRIORITY_CLASS: null
TRAWL_WORKER_QUEUE: null
TRAWL_WORKER_CA_CONFIG_MAP: null
TRAWL_WORKER_HOST_USERS: "false"
TRAWL_WORKER_CLUSTER_USER: "false"
TRAWL_WORKER_NETWORK: null
TRAWL_EGRESS_PORTS: "80,443"
TRAWL_EGRESS_ALLOW: ""
TRAWL_EGRESS_DENY: ""
TRAWL_DNS_SERVERS: ""
TRAWL_MAX_FILE_BYTES: "10737418240"
TRAWL_JOB_SECONDS: "7200"
TRAWL_INSPECT_SECONDS: "50"
TRAWL_ATTEMPTS: "3"
TRAWL_QUEUE_HOURS: "24"
TRAWL_WEBHOOK_SECONDS: "10"
TRAWL_WEBHOOK_GAP_SECONDS: "5"
TRAWL_DASHBOARD_PORT: "8081"
TRAWL_DASHBOARD_URL: null
TRAWL_STRIPE_KEY: null
TRAWL_STRIPE_URL: null
TRAWL_STRIPE_WEBHOOK_SECRET: null
TRAWL_SELLER_NAME: null
TRAWL_SELLER_ADDRESS: null
TRAWL_SELLER_TAX: null
TRAWL_SMTP_URL: null
TRAWL_MAIL_FROM: null
TRAWL_OIDC_ISSUER: null
TRAWL_OIDC_CLIENT_ID: null
TRAWL_OIDC_CLIENT_SECRET: null
TRAWL_API_URL: null
TRAWL_API_KEY: null
{{- end }}

{{- define "trawl.settingForms" -}}
TRAWL_DATA: {form: "^[^\\r\\n\\0]+$", allowed: "one line of text"}
TRAWL_PORT: {form: "^\\d+$", allowed: "a port from 1 to 65535, or 0 for any free one"}
TRAWL_GATEWAY_PORT: {form: "^\\d+$", allowed: "a port from 1 to 65535, or 0 for any free one"}
TRAWL_PROBE_PORT: {form: "^\\d+$", allowed: "a port from 1 to 65535, or 0 for any free one"}
TRAWL_PUBLIC_URL: {form: "^https?:\\/\\/[^\\s?#/]+(\\/[^\\s?#/][^\\s?#]*|\\/*)$", allowed: "an http:// or https:// URL without user, query and fragment, and with one slash before its path"}
TRAWL_TLS_CERT_FILE: {form: "^[^\\r\\n\\0]+$", allowed: "one line of text"}
TRAWL_TLS_KEY_FILE: {form: "^[^\\r\\n\\0]+$", allowed: "one line of text"}
TRAWL_TLS_CA_FILE: {form: "^[^\\r\\n\\0]+$", allowed: "one line of text"}
TRAWL_CLOCK_FILE: {form: "^[^\\r\\n\\0]+$", allowed: "one line of text"}
TRAWL_LOG_LEVEL: {form: "^(error|warn|info|debug)$", allowed: "error, warn, info or debug"}
TRAWL_LOG_FORMAT: {form: "^(auto|text|json)$", allowed: "auto, text or json"}
TRAWL_TRACES_URL: {form: "^https?:\\/\\/[^\\s?#]+$", allowed: "an http:// or https:// URL without user, query and fragment"}
TRAWL_ASYNC_STATUS: {form: "^(202|200)$", allowed: "202 or 200"}
TRAWL_KEY_QUOTA_STATUS: {form: "^(401|429)$", allowed: "401 or 429"}
TRAWL_TRUSTED_PROXIES: {form: "^[\\s,.:/0-9A-Fa-f]*$", allowed: "IP addresses or CIDRs such as 10.0.0.0/8, several with commas between"}
TRAWL_AUTH_FAILURES: {form: "^0*[1-9]\\d*$", allowed: "a whole number of 1 or more"}
TRAWL_AUTH_WINDOW: {form: "^0*[1-9]\\d*$", allowed: "a whole number of seconds from 1 to 1000000"}
TRAWL_AUTH_BLOCK: {form: "^0*[1-9]\\d*$", allowed: "a whole number of seconds from 1 to 1000000"}
TRAWL_REDIS_MEMORY: {form: "^0*[1-9]\\d*$", allowed: "a whole number of bytes from 67108864 (64 MiB) on"}
TRAWL_DURABILITY: {form: "^(strict|relaxed)$", allowed: "strict or relaxed"}
TRAWL_JOB_DAYS: {form: "^\\d+(\\.\\d+)?$", allowed: "a number above 0 and up to 100000, fractions allowed"}
TRAWL_LOG_DAYS: {form: "^\\d+(\\.\\d+)?$", allowed: "a number above 0 and up to 100000, fractions allowed"}
TRAWL_LOG_LINES: {form: "^0*[1-9]\\d*$", allowed: "a whole number of 1 or more"}
TRAWL_OBJECTS: {form: "^(folder|s3)$", allowed: "folder or s3"}
TRAWL_S3_BUCKET: {form: "^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", allowed: "the name of a bucket: 3 to 63 small letters, digits, hyphens and single dots"}
TRAWL_S3_ENDPOINT: {form: "^https?:\\/\\/[^\\s?#@/]+\\/?$", allowed: "an http:// or https:// URL of a server, without user, path, query and fragment"}
TRAWL_S3_PUBLIC_ENDPOINT: {form: "^https?:\\/\\/[^\\s?#@/]+\\/?$", allowed: "an http:// or https:// URL of a server, without user, path, query and fragment"}
TRAWL_S3_REGION: {form: "^[a-z0-9][a-z0-9-]{0,62}$", allowed: "the name of a region, such as eu-central-1"}
TRAWL_S3_PATH_STYLE: {form: "^(true|false)$", allowed: "true or false"}
TRAWL_FILE_HOURS: {form: "^\\d+(\\.\\d+)?$", allowed: "a number above 0 and up to 100000, fractions allowed"}
TRAWL_BACKUPS_SCHEDULED: {form: "^(true|false)$", allowed: "true or false"}
TRAWL_RUNNER: {form: "^(process|kubernetes)$", allowed: "process or kubernetes"}
TRAWL_WORKERS: {form: "^cores$|^0*[1-9]\\d*$", allowed: "a whole number of 1 or more, or cores"}
TRAWL_RESERVED_WORKERS: {form: "^\\d+$", allowed: "a whole number"}
TRAWL_PREEMPT_SECONDS: {form: "^0*[1-9]\\d*$", allowed: "a whole number of seconds from 1 to 1000000"}
TRAWL_SANDBOX: {form: "^(auto|required|off)$", allowed: "auto, required or off"}
TRAWL_CGROUP: {form: "^[^\\r\\n\\0]+$", allowed: "one line of text"}
TRAWL_COOKIES: {form: "^[^\\r\\n\\0]+$", allowed: "one line of text"}
TRAWL_TERMINATION_FILE: {form: "^[^\\r\\n\\0]+$", allowed: "one line of text"}
TRAWL_KUBE_NAMESPACE: {form: "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", allowed: "the name of a Kubernetes namespace"}
TRAWL_KUBE_RATE: {form: "^0*[1-9]\\d*$", allowed: "a whole number of 1 or more"}
TRAWL_WORKER_IMAGE: {form: "^[^\\r\\n\\0]+$", allowed: "one line of text"}
TRAWL_WORKER_CPU: {form: "^[1-9]\\d*(\\.\\d+)?(m|[kKMGTP]i?)?$", allowed: "a quantity of Kubernetes such as 250m or 3Gi"}
TRAWL_WORKER_MEMORY: {form: "^[1-9]\\d*(\\.\\d+)?(m|[kKMGTP]i?)?$", allowed: "a quantity of Kubernetes such as 250m or 3Gi"}
TRAWL_WORKER_AWAY_SECONDS: {form: "^0*[1-9]\\d*$", allowed: "a whole number of seconds from 1 to 1000000"}
TRAWL_WORKER_START_SECONDS: {form: "^0*[1-9]\\d*$", allowed: "a whole number of seconds from 1 to 3000"}
TRAWL_WORKER_HOST_USERS: {form: "^(true|false)$", allowed: "true or false"}
TRAWL_WORKER_CLUSTER_USER: {form: "^(true|false)$", allowed: "true or false"}
TRAWL_WORKER_NETWORK: {form: "^(policies-enforced)$", allowed: "policies-enforced"}
TRAWL_EGRESS_PORTS: {form: "^\\s*\\d+\\s*(,\\s*\\d+\\s*)*$", allowed: "ports from 1 to 65535, several with commas between"}
TRAWL_EGRESS_DENY: {form: "^[\\s,.:/0-9A-Fa-f]*$", allowed: "IP addresses or CIDRs such as 10.0.0.0/8, several with commas between"}
TRAWL_MAX_FILE_BYTES: {form: "^0*[1-9]\\d*$", allowed: "a whole number of 1 or more"}
TRAWL_JOB_SECONDS: {form: "^0*[1-9]\\d*$", allowed: "a whole number of seconds from 1 to 1000000"}
TRAWL_INSPECT_SECONDS: {form: "^0*[1-9]\\d*$", allowed: "a whole number of seconds from 1 to 1000000"}
TRAWL_ATTEMPTS: {form: "^0*[1-9]\\d*$", allowed: "a whole number of 1 or more"}
TRAWL_QUEUE_HOURS: {form: "^\\d+(\\.\\d+)?$", allowed: "a number above 0 and up to 100000, fractions allowed"}
TRAWL_WEBHOOK_SECONDS: {form: "^0*[1-9]\\d*$", allowed: "a whole number of seconds from 1 to 1000000"}
TRAWL_WEBHOOK_GAP_SECONDS: {form: "^0*[1-9]\\d*$", allowed: "a whole number of seconds from 1 to 1000000"}
TRAWL_DASHBOARD_PORT: {form: "^none$|^\\d+$", allowed: "a port from 1 to 65535, or 0 for any free one, or none"}
TRAWL_DASHBOARD_URL: {form: "^https?:\\/\\/[^\\s?#@/]+\\/?$", allowed: "an http:// or https:// URL of a server, without user, path, query and fragment"}
TRAWL_STRIPE_KEY: {form: "^[^\\r\\n\\0]+$", allowed: "one line of text"}
TRAWL_STRIPE_URL: {form: "^https?:\\/\\/[^\\s?#/]+(\\/[^\\s?#/][^\\s?#]*|\\/*)$", allowed: "an http:// or https:// URL without user, query and fragment, and with one slash before its path"}
TRAWL_STRIPE_WEBHOOK_SECRET: {form: "^[^\\r\\n\\0]+$", allowed: "one line of text"}
TRAWL_SELLER_NAME: {form: "^[^\\r\\n\\0]+$", allowed: "one line of text"}
TRAWL_SELLER_ADDRESS: {form: "^[^\\r\\n\\0]+$", allowed: "one line of text"}
TRAWL_SELLER_TAX: {form: "^[^\\r\\n\\0]+$", allowed: "one line of text"}
TRAWL_MAIL_FROM: {form: "^[^@\\r\\n]+@[^@\\s]+$", allowed: "a mail address"}
TRAWL_OIDC_ISSUER: {form: "^https?:\\/\\/[^\\s?#]+$", allowed: "an http:// or https:// URL without user, query and fragment"}
TRAWL_OIDC_CLIENT_ID: {form: "^[^\\r\\n\\0]+$", allowed: "one line of text"}
TRAWL_OIDC_CLIENT_SECRET: {form: "^[^\\r\\n\\0]+$", allowed: "one line of text"}
TRAWL_API_URL: {form: "^https?:\\/\\/[^\\s?#/]+(\\/[^\\s?#/][^\\s?#]*|\\/*)$", allowed: "an http:// or https:// URL without user, query and fragment, and with one slash before its path"}
TRAWL_API_KEY: {form: "^[!-~]+$", allowed: "visible ASCII characters without blanks"}
{{- end }}
