package cluster

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
)

// access is the cluster as the user's kubeconfig reaches it.
type access struct {
	config *rest.Config
	env    *envconf.Config
	text   []byte // the kubeconfig, with its current context alone
}

// connect reads a kubeconfig and asks the cluster for its API.
func connect(file string) (*access, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w: expected --kubeconfig FILE or $KUBECONFIG", err)
	}
	config.QPS, config.UserAgent = -1, "kmsharness"
	raw, err := loaded.RawConfig()
	if err == nil {
		err = api.MinifyConfig(&raw)
	}
	if err == nil {
		err = api.FlattenConfig(&raw)
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	text, err := clientcmd.Write(raw)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	client, err := klient.New(config)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", config.Host, err)
	}
	return &access{config: config, env: envconf.New().WithClient(client), text: text}, nil
}

// resources are the objects of a namespace, or (empty) of the cluster.
func (a *access) resources(namespace string) *resources.Resources {
	return a.env.Client().Resources(namespace)
}
