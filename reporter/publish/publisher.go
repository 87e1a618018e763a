package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/altsvc"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/reporter/core"
)

// Publisher writes the reports of one node. It is not safe for concurrent use: there is one write at a time, which
// is also what keeps an older result from overtaking a newer one.
type Publisher struct {
	client     *client
	operator   Operator
	form       Form
	node       string
	now        func() time.Time
	transition Transition
}

// New makes a publisher that reaches the API server by config, and others with alternatives unless they are nil. Nothing is sent yet.
func New(config *rest.Config, alternatives *altsvc.Options, operator Operator, form Form, node string, now func() time.Time) (*Publisher, error) {
	if _, err := operator.kind(); err != nil {
		return nil, err
	}
	c, err := newClient(config, alternatives, operator)
	if err != nil {
		return nil, err
	}
	return &Publisher{client: c, operator: operator, form: form, node: node, now: now}, nil
}

// Apply carries out a core.Write. It returns at the write's deadline at the latest; OutcomeOf says what an error
// means. After an error the connection is not used again.
func (p *Publisher) Apply(ctx context.Context, write core.Action) error {
	ctx, cancel := context.WithTimeout(ctx, write.Until.Sub(p.now())) // the wall clock may have been set
	defer cancel()
	err := p.apply(ctx, write)
	if err != nil {
		p.client.disconnect()
	}
	return err
}

func (p *Publisher) apply(ctx context.Context, write core.Action) error {
	body, err := p.body(ctx, write)
	if err != nil {
		return err
	}
	if p.now().After(write.Until) { // asked of the clock: right after a pause ctx may not know it yet
		return fmt.Errorf("apply: results are too old to be written: %w", context.DeadlineExceeded)
	}
	return p.client.apply(ctx, contract.FieldManager(p.node), body)
}

func (p *Publisher) body(ctx context.Context, write core.Action) ([]byte, error) {
	if body, ok, err := Body(p.operator, p.form, write, &p.transition); ok {
		return body, err
	}
	cr, err := p.client.get(ctx)
	if err := p.transition.Read(p.node, cr, statusOf(err), err, p.now()); err != nil {
		return nil, err
	}
	body, _, err := Body(p.operator, p.form, write, &p.transition)
	return body, err
}

// statusOf is the HTTP status of an answer, and 0 where there was none.
func statusOf(err error) int {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		return int(answer.Status().Code)
	}
	return 0
}

// Close ends the connections.
func (p *Publisher) Close() { p.client.close() }
