package staticpods

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/exchange"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Executor implements operator.Executor. All fields are required. Its methods may be called again; Check and Rewrite may run beside the others, of which
// one at a time may run.
type Executor struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// Encrypted are the resources that are encrypted: "secrets".
	Encrypted []string

	sockets map[string][]uint64 // of reporters, by node
}

// StartPlugins implements operator.Executor. The plugins are in the configuration of all nodes from now on.
func (e *Executor) StartPlugins(ctx context.Context, node string, all []revision.Plugin) error {
	return e.change(ctx, fmt.Sprintf("start plugins on %s", node), func(ctx context.Context, s *corev1.Secret) error {
		if len(s.Data[ConfigKey]) == 0 { // without it there is no revision
			text, err := revision.File{Resources: e.Encrypted}.YAML(revision.Config{Keys: []uint64{revision.Plain}})
			if err != nil {
				return err
			}
			s.Data[ConfigKey] = text
		}
		c, err := ReadConfiguration(s)
		if err != nil {
			return err
		}
		has := plugins(s, c)
		for _, p := range all {
			if runs, there := has[p.KeyID]; there && runs == p.Config {
				continue
			}
			credentials, err := e.credentials(ctx, p.Config)
			if err != nil {
				return err
			}
			if err := put(s.Data, p, credentials); err != nil {
				return err
			}
		}
		return nil
	})
}

// credentials are the Secrets and ConfigMaps that a plugin refers to.
func (e *Executor) credentials(ctx context.Context, p config.Plugin) (map[config.Reference]map[string][]byte, error) {
	all := map[config.Reference]map[string][]byte{}
	for _, r := range p.Credentials() {
		if r.Kind == "Secret" {
			s, err := e.Client.CoreV1().Secrets(exchange.Credentials).Get(ctx, r.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			all[r] = s.Data
			continue
		}
		m, err := e.Client.CoreV1().ConfigMaps(exchange.Credentials).Get(ctx, r.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		all[r] = exchange.ConfigMapData(m)
	}
	return all, nil
}

// StopPlugins implements operator.Executor. A plugin that the configuration still names stays.
func (e *Executor) StopPlugins(ctx context.Context, node string, keyIDs []uint64) error {
	return e.change(ctx, fmt.Sprintf("stop plugins on %s", node), func(_ context.Context, s *corev1.Secret) error {
		if len(s.Data) == 0 {
			return nil
		}
		named, err := revision.KeysInFile(s.Data[ConfigKey])
		if err != nil {
			return fmt.Errorf("data[%s]: %w", ConfigKey, err)
		}
		for _, id := range keyIDs {
			if !slices.Contains(named, id) {
				drop(s.Data, id)
			}
		}
		return nil
	})
}

// Report implements operator.Executor. The reporter of a pod has the sockets of its plugins: the installer sees to it.
func (e *Executor) Report(_ context.Context, node string, keyIDs []uint64) error {
	if e.sockets == nil {
		e.sockets = map[string][]uint64{}
	}
	e.sockets[node] = slices.Clone(keyIDs)
	return nil
}

// RollOut implements operator.Executor. The file is in the configuration of all nodes from now on.
func (e *Executor) RollOut(ctx context.Context, node string, rev int, file []byte) error {
	return e.change(ctx, fmt.Sprintf("roll out revision %d to %s", rev, node), func(_ context.Context, s *corev1.Secret) error {
		s.Data[ConfigKey] = file
		return nil
	})
}

// change changes the configuration that is wanted, and writes it if it is another one then.
func (e *Executor) change(ctx context.Context, what string, change func(context.Context, *corev1.Secret) error) error {
	ctx, cancel := context.WithTimeout(ctx, exchange.RequestTimeout)
	defer cancel()
	secrets := e.Client.CoreV1().Secrets(revision.Namespace)
	s, err := secrets.Get(ctx, DesiredName, metav1.GetOptions{})
	absent := apierrors.IsNotFound(err)
	if absent {
		s, err = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: revision.Namespace, Name: DesiredName, Finalizers: []string{revision.Finalizer}}}, nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	before := s.Data
	if s.Data = maps.Clone(before); s.Data == nil {
		s.Data = map[string][]byte{}
	}
	switch err = change(ctx, s); {
	case err != nil || maps.EqualFunc(before, s.Data, bytes.Equal):
	case absent:
		_, err = secrets.Create(ctx, s, metav1.CreateOptions{FieldManager: exchange.FieldManager})
	default:
		_, err = secrets.Update(ctx, s, metav1.UpdateOptions{FieldManager: exchange.FieldManager})
	}
	if err != nil {
		return fmt.Errorf("%s: secret %s/%s: %w", what, revision.Namespace, DesiredName, err)
	}
	return nil
}

// pluginConfig is the data of a Secret for one plugin alone.
func (e *Executor) pluginConfig(ctx context.Context, p revision.Plugin) (map[string][]byte, error) {
	key := revision.Key{ID: p.KeyID, Type: config.KMS, Plugin: p.Config.WithoutContent()}
	file := revision.File{Resources: e.Encrypted, Keys: []revision.Key{key}, Dir: contract.SocketDir}
	text, err := file.YAML(revision.Config{Keys: []uint64{p.KeyID}})
	if err != nil {
		return nil, err
	}
	credentials, err := e.credentials(ctx, p.Config)
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{ConfigKey: text}
	return data, put(data, p, credentials)
}
