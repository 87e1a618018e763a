package live

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/poll"
)

// legacyTokens are those of Secrets, by which reporters may be known.
type legacyTokens struct {
	e    *apiServer
	last map[string]string // the newest of each node; guarded by e.mu
}

// used reports whether each reporter has one.
func (l *legacyTokens) used() bool {
	return l.e.scenario.Topology.ReporterToken == scenario.TokenSecret
}

// renew gives the service account of a node a new Secret in place of all others, with a token, as the token controller does: not every control plane
// has one. Under the name of an earlier Secret the same token would be made again where the key is an RSA key, and be valid again.
func (l *legacyTokens) renew(ctx context.Context, n *cluster.Node) error {
	fail := func(err error) error { return fmt.Errorf("legacy token of the reporter of %s: %w", n.Name, err) }
	c, err := l.e.Nodes.Admin()
	if err != nil {
		return fail(err)
	}
	account := cluster.NewObject("v1", "ServiceAccount", n.Name, nil)
	account.SetNamespace(contract.TokenNamespace)
	if err := c.Ensure(ctx, cluster.AccountObjects(), account); err != nil {
		return fail(err)
	}
	if account, err = c.Resource(cluster.AccountObjects()).Namespace(contract.TokenNamespace).Get(ctx, n.Name, metav1.GetOptions{}); err != nil {
		return fail(err)
	}
	if err := l.remove(ctx, n); err != nil {
		return err
	}
	name := n.Name + "." + strconv.FormatInt(time.Now().UnixMilli(), 36)
	key, err := n.ReporterPlace.InCluster.AccountKey()
	if err != nil {
		return fail(err)
	}
	token, err := controlplane.SignToken(key, controlplane.LegacyClaims{Issuer: controlplane.LegacyIssuer, Subject: contract.ReporterToken(n.Name),
		Namespace: contract.TokenNamespace, Secret: name, Account: n.Name, AccountUID: account.GetUID()})
	if err != nil {
		return fail(err)
	}
	secret := cluster.NewObject("v1", "Secret", name, cluster.Object{"type": string(corev1.SecretTypeServiceAccountToken), "data": cluster.Object{"token": base64.StdEncoding.EncodeToString([]byte(token))}})
	secret.SetAnnotations(map[string]string{corev1.ServiceAccountNameKey: n.Name, corev1.ServiceAccountUIDKey: string(account.GetUID())})
	if _, err := c.Resource(cluster.SecretObjects()).Namespace(contract.TokenNamespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return fail(err)
	}
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	l.last[n.Name] = token
	return nil
}

// newest is the last one of a node, whether or not its Secret is still there.
func (l *legacyTokens) newest(node string) string {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	return l.last[node]
}

// remove deletes the Secrets of a node.
func (l *legacyTokens) remove(ctx context.Context, n *cluster.Node) error {
	c, err := l.e.Nodes.Admin()
	if err != nil {
		return err
	}
	return c.RemoveIn(ctx, cluster.SecretObjects(), contract.TokenNamespace, n.Name+".")
}

// revoke deletes the Secrets of reporters, and returns when API servers have forgotten that their tokens were valid.
func (l *legacyTokens) revoke(ctx context.Context, nodes []*cluster.Node) error {
	for _, n := range nodes {
		if err := l.remove(ctx, n); err != nil {
			return err
		}
		l.e.record(expired(n, false))
	}
	return poll.Pause(ctx, controlplane.TokenCache)
}
