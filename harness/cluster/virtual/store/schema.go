package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// crdSchema is the schema of a CRD's version in the forms that Kubernetes' own code prunes, defaults and validates by.
type crdSchema struct {
	structural *schema.Structural
	openAPI    *spec.Schema
	whole      validation.SchemaValidator
	status     validation.SchemaValidator // nil if the schema has no status
	// rules are the CEL rules; nil if there are none. They are compiled when the first object is validated.
	rules func() *cel.Validator
}

func newCRDSchema(v1 *apiextensionsv1.JSONSchemaProps) (*crdSchema, error) {
	props := &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v1, props, nil)
	if err != nil {
		return nil, fmt.Errorf("convert the schema: %w", err)
	}
	c := &crdSchema{}
	if c.structural, err = schema.NewStructural(props); err != nil {
		return nil, fmt.Errorf("make the schema structural: %w", err)
	}
	if err := defaulting.PruneDefaults(c.structural); err != nil {
		return nil, fmt.Errorf("prune the defaults: %w", err)
	}
	if c.whole, c.openAPI, err = validation.NewSchemaValidator(props); err != nil {
		return nil, fmt.Errorf("read the schema as OpenAPI: %w", err)
	}
	if status, ok := props.Properties["status"]; ok {
		if c.status, _, err = validation.NewSchemaValidator(&status); err != nil {
			return nil, fmt.Errorf("read the schema of the status as OpenAPI: %w", err)
		}
	}
	c.rules = sync.OnceValue(func() *cel.Validator { return cel.NewValidator(c.structural, true, celconfig.PerCallLimit) })
	return c, nil
}

// validate returns the errors of an API server about an object, or about its status if that is the subresource; was is nil for a new object,
// and repeats as in a candidate.
func (c *crdSchema) validate(body, was map[string]any, subresource string, repeats any) field.ErrorList {
	errs, ratcheting := c.values(body, was, subresource, repeats)
	if subresource == "" {
		errs = append(errs, objectmeta.Validate(context.Background(), nil, body, c.structural, false)...)
	}
	if lists := listtype.ValidateListSetsAndMaps(nil, c.structural, body); len(lists) > 0 {
		if len(listtype.ValidateListSetsAndMaps(nil, c.structural, was)) == 0 {
			errs = append(errs, lists...)
		}
	}
	sortErrors(errs)
	rules := c.rules()
	if rules == nil {
		return errs
	}
	if slices.ContainsFunc(errs, blocksRules) {
		return append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
	}
	broken, _ := rules.Validate(context.Background(), nil, c.structural, body, was, celconfig.RuntimeCELCostBudget, ratcheting...)
	sortErrors(broken)
	return append(errs, broken...)
}

// values validates by all of a schema but its list types and CEL rules. An error about a value that did not change is not one: the options say the
// same to the CEL rules.
func (c *crdSchema) values(body, was map[string]any, subresource string, repeats any) (field.ErrorList, []cel.Option) {
	if was == nil {
		return validation.ValidateCustomResource(nil, body, c.whole), nil
	}
	correlated := common.NewCorrelatedObject(body, was, &model.Structural{Structural: c.structural})
	options := []cel.Option{cel.WithRatcheting(correlated)}
	var path *field.Path
	of, before, by := any(body), any(was), c.whole
	if subresource != "" {
		var ok bool
		if of, ok = body["status"]; !ok {
			return nil, options
		}
		path, before, by, correlated = field.NewPath("status"), was["status"], c.status, correlated.Key("status")
	}
	if repeats != nil && len(validation.ValidateCustomResource(path, repeats, by)) == 0 {
		return nil, options // of all else an error would be forgiven
	}
	if len(validation.ValidateCustomResource(path, of, by)) == 0 { // only errors need to be forgiven
		return nil, options
	}
	return validation.ValidateCustomResourceUpdate(path, of, before, by, validation.WithRatcheting(correlated)), options
}

// blocksRules reports whether an API server does not evaluate CEL rules because of an error.
func blocksRules(e *field.Error) bool {
	switch e.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

// sortErrors sorts errors by their fields. Kubernetes' code visits fields in the order of a map; those of one field have an order.
func sortErrors(errs field.ErrorList) {
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
}
