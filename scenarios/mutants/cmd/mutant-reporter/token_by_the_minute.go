package main

import (
	"fmt"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"

	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/options"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// readTokenByTheMinute leaves it to client-go when the file of the token is read again.
func readTokenByTheMinute(o options.Options) (reporter.Change, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.Wrap(transport.TokenSourceWrapTransport(transport.NewCachedFileTokenSource(config.BearerTokenFile)))
	config.BearerToken, config.BearerTokenFile = "", ""
	publisher, err := publish.New(config, nil, o.Operator, o.Form, o.Node, time.Now)
	if err != nil {
		return nil, err
	}
	return func(l *reporter.Loop) { l.Publisher = publisher }, nil
}
