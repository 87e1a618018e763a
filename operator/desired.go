package operator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// The operator wants one configuration of all pods: the Secret DesiredName. OpenShift's installer makes a revision of each change, and rolls it out to one
// node after another. So plugins and reporter are the installer's to start and to stop in order.

// content is what is desired of the pods. A file of a revision that was not seen yet must not give way to an older one: ErrBehind.
func (o *Operator) content(s Seen) (content core.Content, err error) {
	secret, there := o.desired()
	if !there {
		return content, nil
	}
	c, err := o.configurations.get(secret, func() (Configuration, error) { return ReadConfiguration(secret) })
	if err != nil {
		return content, err
	}
	content = core.Content{Revision: s.revisionOf(c.File), Plugins: c.Plugins}
	keys, _, err := revision.KeysInFile(c.File)
	if err == nil && content.Revision == 0 && len(keys) > 0 {
		err = fmt.Errorf("secret %s/%s has keys %v: %w", secret.Namespace, secret.Name, keys, ErrBehind)
	}
	return content, err
}

// desire makes the pods' desired content what it should be, in one write, so that it becomes one revision of the pods.
func (o *Operator) desire(ctx context.Context, s Seen, c core.Content) (err error) {
	before, there := o.desired()
	after := before.DeepCopy()
	if after.Data == nil {
		after.Data = map[string][]byte{}
	}
	if after.Data[ConfigKey], err = o.file(s, c.Revision); err != nil {
		return err
	}
	for _, p := range s.Desired.Plugins {
		if _, stays := c.Of(p.KeyID); !stays {
			drop(after.Data, p.KeyID)
		}
	}
	for _, p := range c.Plugins {
		if has, there := s.Desired.Of(p.KeyID); there && has == p.Config {
			continue
		}
		credentials, err := o.credentials(p.Config)
		if err != nil {
			return err
		}
		if err := put(after.Data, p, credentials); err != nil {
			return err
		}
	}
	if there {
		_, err = o.secrets().Update(ctx, after, metav1.UpdateOptions{FieldManager: fieldManager})
	} else {
		_, err = o.secrets().Create(ctx, after, metav1.CreateOptions{FieldManager: fieldManager})
	}
	if err != nil {
		return fmt.Errorf("secret %s/%s: %w", revision.Namespace, after.Name, err)
	}
	return nil
}

// file is the encryption configuration of a revision. Before there is one it is that of clear text: without a file there is no revision of the pods.
func (o *Operator) file(s Seen, number int) ([]byte, error) {
	if number > 0 {
		return s.File(number)
	}
	return revision.File{Resources: o.encrypted()}.YAML(revision.Config{Keys: []uint64{revision.Plain}})
}

// desired is the Secret with the configuration that is wanted, or what it is before there is one.
func (o *Operator) desired() (s *corev1.Secret, there bool) {
	item, there, err := o.sources.desired.GetByKey(revision.Namespace + "/" + o.DesiredName())
	if err == nil && there {
		return item.(*corev1.Secret), true
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: revision.Namespace, Name: o.DesiredName(), Finalizers: []string{revision.Finalizer}}}, false
}

// credentials are the Secrets and ConfigMaps that a plugin refers to; ErrBehind if one is not there.
func (o *Operator) credentials(p config.Plugin) (map[config.Reference]map[string][]byte, error) {
	all, there := map[config.Reference]map[string][]byte{}, o.contents()
	for _, r := range p.Credentials() {
		content, found := there[r]
		if !found {
			return nil, fmt.Errorf("%s in %s: %w", r, Credentials, ErrBehind)
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
