package operator

import (
	"bytes"
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/exchange"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// The operator wants one configuration of all pods: the Secret DesiredName. OpenShift's installer makes a revision of each change, and rolls it out to one
// node after another. So plugins and reporter are the installer's to start and to stop in order.

// desire changes the configuration that is wanted as actions on nodes ask for, and returns the other actions. It is one write, and so one revision.
func (o *Operator) desire(ctx context.Context, s exchange.Seen, actions []core.Action) (others []core.Action, err error) {
	before, there := o.desired()
	after := before.DeepCopy()
	if after.Data == nil {
		after.Data = map[string][]byte{}
	}
	for _, a := range actions {
		switch a := a.(type) {
		case core.StartPlugins:
			err = o.startPlugins(after, a.Plugins)
		case core.StopPlugins:
			for _, id := range a.Plugins {
				drop(after.Data, id)
			}
		case core.Report:
			o.sockets[a.Node] = a.Plugins
		case core.RollOut:
			after.Data[ConfigKey], err = s.File(a.Revision)
		default:
			others = append(others, a)
		}
		if err != nil {
			return nil, err
		}
	}
	if maps.EqualFunc(before.Data, after.Data, bytes.Equal) {
		return others, nil
	}
	ctx, cancel := context.WithTimeout(ctx, exchange.RequestTimeout)
	defer cancel()
	if secrets := o.client.CoreV1().Secrets(revision.Namespace); there {
		_, err = secrets.Update(ctx, after, metav1.UpdateOptions{FieldManager: exchange.FieldManager})
	} else {
		_, err = secrets.Create(ctx, after, metav1.CreateOptions{FieldManager: exchange.FieldManager})
	}
	if err != nil {
		return nil, fmt.Errorf("secret %s/%s: %w", revision.Namespace, after.Name, err)
	}
	return others, nil
}

// desired is the Secret with the configuration that is wanted, or what it is before there is one.
func (o *Operator) desired() (s *corev1.Secret, there bool) {
	item, there, err := o.sources.desired.GetByKey(revision.Namespace + "/" + o.DesiredName())
	if err == nil && there {
		return item.(*corev1.Secret), true
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: revision.Namespace, Name: o.DesiredName(), Finalizers: []string{revision.Finalizer}}}, false
}

// startPlugins puts plugins into the configuration that is wanted.
func (o *Operator) startPlugins(s *corev1.Secret, all []revision.Plugin) error {
	if len(s.Data[ConfigKey]) == 0 { // without it there is no revision
		text, err := revision.File{Resources: o.encrypted()}.YAML(revision.Config{Keys: []uint64{revision.Plain}})
		if err != nil {
			return err
		}
		s.Data[ConfigKey] = text
	}
	c, err := ReadConfiguration(s)
	if err != nil {
		return err
	}
	for _, p := range all {
		if runs, there := c.Of(p.KeyID); there && runs == p.Config {
			continue
		}
		credentials, err := o.credentials(p.Config)
		if err != nil {
			return err
		}
		if err := put(s.Data, p, credentials); err != nil {
			return err
		}
	}
	return nil
}

// credentials are the Secrets and ConfigMaps that a plugin refers to; ErrBehind if one is not there.
func (o *Operator) credentials(p config.Plugin) (map[config.Reference]map[string][]byte, error) {
	all, there := map[config.Reference]map[string][]byte{}, o.contents()
	for _, r := range p.Credentials() {
		content, found := there[r]
		if !found {
			return nil, fmt.Errorf("%s in %s: %w", r, exchange.Credentials, exchange.ErrBehind)
		}
		all[r] = content
	}
	return all, nil
}

// pluginConfig is the data of a Secret for one plugin alone.
func (o *Operator) pluginConfig(p revision.Plugin) (map[string][]byte, error) {
	key := revision.Key{ID: p.KeyID, Type: config.KMS, Plugin: p.Config.WithoutContent()}
	file := revision.File{Resources: o.encrypted(), Keys: []revision.Key{key}, Dir: contract.SocketDir}
	text, err := file.YAML(revision.Config{Keys: []uint64{p.KeyID}})
	if err != nil {
		return nil, err
	}
	credentials, err := o.credentials(p.Config)
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{ConfigKey: text}
	return data, put(data, p, credentials)
}
