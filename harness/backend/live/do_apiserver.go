package live

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/objects"
	"github.com/kmsharness/kmsharness/harness/scenario"
	lifecycle "github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/encryption"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Where an administrator keeps what plugins need to log in, and the one that every scenario finds there.
const (
	credentialNamespace = lifecycle.Credentials
	credentialSecret    = operand.CredentialSecret
)

// configure writes the cluster's one APIServer configuration, as an administrator does. What comes of it is the operators' business: it
// returns at once.
func (fs *faults) configure(ctx context.Context, a *scenario.APIServer) error {
	wanted, err := operand.Desired(a, fs.e.scenario.Topology.CRDs)
	if err != nil {
		return err
	}
	err = fs.e.operated.eachOperated(func(f *apiServer) error {
		f.pods.delay(operand.Lags(a.Lag, f.nodeNames()))
		return f.data.writeFirst(ctx)
	})
	if err != nil {
		return err
	}
	var refusal error
	var began time.Time
	err = fs.e.persist(ctx, func(ctx context.Context, c *cluster.Client) error {
		began = time.Now()
		refusal = wanted.Write(ctx, c)
		if apierrors.IsInvalid(refusal) || apierrors.IsBadRequest(refusal) || unknownField(refusal) {
			return nil
		}
		return refusal
	})
	switch refused := a.Expect == scenario.OutcomeRefused; {
	case err != nil:
		return fmt.Errorf("write the APIServer configuration: %w", err)
	case refused && refusal == nil:
		return errors.New("write the APIServer configuration: the API took it, expected that it refuses")
	case !refused && refusal != nil:
		return fmt.Errorf("write the APIServer configuration: %w", refusal)
	case refused:
		return nil
	}
	return fs.e.operated.eachOperated(func(f *apiServer) error {
		f.encrypting.recordType(encryption.Type(a.Type), began)
		return nil
	})
}

// unknownField reports whether an apply was refused for a field that its type does not have. The API server answers with 500 and no reason.
func unknownField(err error) bool {
	return err != nil && strings.Contains(err.Error(), "field not declared in schema")
}

// prepareOperator makes the namespaces of an operator and the credentials that plugins refer to, and asks for clear text.
func prepareOperator(ctx context.Context, c *cluster.Client) error {
	for _, name := range []string{credentialNamespace, revision.Namespace} {
		if err := c.Ensure(ctx, cluster.NamespaceObjects(), cluster.NewObject("v1", "Namespace", name, nil)); err != nil {
			return err
		}
	}
	credentials := credentialObject(0)
	credentials.SetNamespace(credentialNamespace)
	if err := c.Ensure(ctx, cluster.SecretObjects(), credentials); err != nil {
		return err
	}
	return objects.ConfigureEncryption(ctx, c, string(encryption.Identity))
}

// credentialObject is the Secret of the plugins with a content, by number.
func credentialObject(content int) *unstructured.Unstructured {
	data := cluster.Object{"role-id": base64.StdEncoding.EncodeToString([]byte("role")), "secret-id": base64.StdEncoding.EncodeToString(operand.CredentialContent(content))}
	return cluster.NewObject("v1", "Secret", credentialSecret, cluster.Object{"data": data})
}
