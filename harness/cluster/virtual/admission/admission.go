// Package admission judges writes by the ValidatingAdmissionPolicies of a cluster. Matching, CEL and the words of a refusal are
// kube-apiserver's own code; only where policies come from is not.
package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// Policies are those in force. It is safe for concurrent use.
type Policies struct {
	dispatcher generic.Dispatcher[validating.PolicyHook]
	objects    admission.ObjectInterfaces

	mu    sync.Mutex
	hooks []validating.PolicyHook
}

// New is no policies.
func New() *Policies {
	return &Policies{
		dispatcher: validating.NewDispatcher(nil, generic.NewPolicyMatcher(matching.NewMatcher(namespaces{}, nil))),
		objects:    admission.NewObjectInterfacesFromScheme(runtime.NewScheme()),
	}
}

// namespaces has one of every name, because namespaces need not exist. Their only label is the one that kube-apiserver gives each.
type namespaces struct{ corelisters.NamespaceLister }

func (namespaces) Get(name string) (*corev1.Namespace, error) {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}}, nil
}

// Set puts policies in force, and ends all others. A policy without a binding has no effect.
func (p *Policies) Set(policies, bindings []*unstructured.Unstructured) error {
	var bound []*admissionregistration.ValidatingAdmissionPolicyBinding
	for _, o := range bindings {
		b := &admissionregistration.ValidatingAdmissionPolicyBinding{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, b); err != nil {
			return fmt.Errorf("read the ValidatingAdmissionPolicyBinding %s: %w", o.GetName(), err)
		}
		if m := b.Spec.MatchResources; m != nil {
			selectAll(m)
		}
		bound = append(bound, b)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hooks = nil
	for _, o := range policies {
		policy := &admissionregistration.ValidatingAdmissionPolicy{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, policy); err != nil {
			return fmt.Errorf("read the ValidatingAdmissionPolicy %s: %w", o.GetName(), err)
		}
		if m := policy.Spec.MatchConstraints; m != nil {
			selectAll(m)
		}
		evaluator, err := compiledOnce(policy)
		if err != nil {
			return err
		}
		p.hooks = append(p.hooks, validating.PolicyHook{Policy: policy, Evaluator: evaluator, Bindings: slices.DeleteFunc(slices.Clone(bound), func(b *admissionregistration.ValidatingAdmissionPolicyBinding) bool {
			return b.Spec.PolicyName != policy.Name
		})})
	}
	return nil
}

// selectAll gives selectors that are left out their default.
func selectAll(m *admissionregistration.MatchResources) {
	if m.NamespaceSelector == nil {
		m.NamespaceSelector = &metav1.LabelSelector{}
	}
	if m.ObjectSelector == nil {
		m.ObjectSelector = &metav1.LabelSelector{}
	}
}

// Admit is an error, as a client gets it, for what a policy denies.
func (p *Policies) Admit(ctx context.Context, a admission.Attributes) error {
	p.mu.Lock()
	hooks := p.hooks
	p.mu.Unlock()
	if len(hooks) == 0 {
		return nil
	}
	return p.dispatcher.Dispatch(ctx, a, p.objects, hooks)
}

// compiled are the evaluators of each text that was a policy's, by name and spec. They are compiled once per process, because each
// scenario has the same.
var compiled sync.Map

func compiledOnce(policy *admissionregistration.ValidatingAdmissionPolicy) (validating.Validator, error) {
	spec, err := json.Marshal(policy.Spec)
	if err != nil {
		return nil, fmt.Errorf("read the ValidatingAdmissionPolicy %s: %w", policy.Name, err)
	}
	evaluator, _ := compiled.LoadOrStore(policy.Name+" "+string(spec), sync.OnceValue(func() validating.Validator { return compile(policy) }))
	return evaluator.(func() validating.Validator)(), nil
}

// compile is what kube-apiserver does with a new policy.
func compile(policy *admissionregistration.ValidatingAdmissionPolicy) validating.Validator {
	failure := policy.Spec.FailurePolicy
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return validating.NewValidator(nil, nil, nil, nil, failure, err)
	}
	may := cel.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil, HasAuthorizer: true}
	message := may
	message.HasAuthorizer = false
	var variables []cel.NamedExpressionAccessor
	for _, v := range policy.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	compiler.CompileAndStoreVariables(variables, may, environment.StoredExpressions)
	var conditions, annotations []cel.ExpressionAccessor
	messages := make([]cel.ExpressionAccessor, len(policy.Spec.Validations))
	for i, v := range policy.Spec.Validations {
		conditions = append(conditions, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		if v.MessageExpression != "" {
			messages[i] = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
	}
	for _, a := range policy.Spec.AuditAnnotations {
		annotations = append(annotations, &validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression})
	}
	compileAll := func(all []cel.ExpressionAccessor, may cel.OptionalVariableDeclarations) cel.ConditionEvaluator {
		return compiler.CompileCondition(all, may, environment.StoredExpressions)
	}
	var matcher matchconditions.Matcher
	if len(policy.Spec.MatchConditions) > 0 {
		var matches []cel.ExpressionAccessor
		for i := range policy.Spec.MatchConditions {
			matches = append(matches, (*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i]))
		}
		matcher = matchconditions.NewMatcher(compileAll(matches, may), failure, "policy", "validate", policy.Name)
	}
	return validating.NewValidator(compileAll(conditions, may), matcher, compileAll(annotations, may), compileAll(messages, message), failure, nil)
}
