module tools/schemas

go 1.26.0

require (
	github.com/cert-manager/cert-manager v1.19.1
	github.com/prometheus-operator/prometheus-operator v0.85.0
	k8s.io/kubernetes v1.31.14
	sigs.k8s.io/gateway-api v1.6.1
)
