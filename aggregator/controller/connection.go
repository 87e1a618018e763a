package controller

import (
	"fmt"
	"net"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Connection loads a kubeconfig (the in-cluster one when path is empty) for an aggregator: without a client-side
// rate limit, whose waiting would eat into the latency, and with a short dial time-out.
func Connection(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig: %w", err)
	}
	return tune(config), nil
}

func tune(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.UserAgent = "kms-health-aggregator"
	config.Dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	return config
}

// DetectDeadConnections makes client-go notice a connection that swallows packets (a load balancer that went away
// without a word) within two seconds instead of 45: it sets the HTTP/2 ping interval and time-out, which client-go
// takes from the environment alone. What the administrator has set stays. Call it once, before the first connection.
func DetectDeadConnections() error {
	for _, name := range []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS", "HTTP2_PING_TIMEOUT_SECONDS"} {
		if _, set := os.LookupEnv(name); set {
			continue
		}
		if err := os.Setenv(name, "1"); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}
