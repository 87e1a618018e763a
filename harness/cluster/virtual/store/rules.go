package store

import (
	"slices"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ruleOrigin marks errors that come from a CEL rule.
const ruleOrigin = "cel"

// rules are the CEL rules of the CRDs that a reporter can break, by their text. All others are about fields that nobody
// writes here; a test names those of the statuses.
func rules() map[string]func(string) bool {
	return map[string]func(string) bool{
		"!format.dns1123Subdomain().validate(self).hasValue()": func(v string) bool { return len(utilvalidation.IsDNS1123Subdomain(v)) == 0 },
	}
}

// modelled is a rule by its text; nil if it is not modelled.
func modelled(text string) func(string) bool {
	if holds, known := rules()[text]; known {
		return holds
	}
	return specRules()[text]
}

// blockRules is what an API server makes of the errors of a type that has CEL rules: with one of some kinds the rules are not
// looked at, and it says so.
func (t *Type) blockRules(errs field.ErrorList) field.ErrorList {
	blocking := []field.ErrorType{field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid}
	if !t.ruled || !slices.ContainsFunc(errs, func(e *field.Error) bool { return slices.Contains(blocking, e.Type) }) {
		return errs
	}
	errs = slices.DeleteFunc(errs, func(e *field.Error) bool { return e.Origin == ruleOrigin })
	return append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
}

// hasRules is whether there is any CEL rule in a schema.
func hasRules(s *apiextensions.JSONSchemaProps) bool {
	for _, p := range s.Properties {
		if hasRules(&p) {
			return true
		}
	}
	below := s.Items != nil && s.Items.Schema != nil && hasRules(s.Items.Schema) ||
		s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil && hasRules(s.AdditionalProperties.Schema)
	return below || len(s.XValidations) > 0
}
