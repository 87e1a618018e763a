package scenario

import "github.com/kmsharness/kmsharness/contract"

// VerbCondition sets or deletes a condition of another controller on the operator CR.
const VerbCondition Verb = "condition"

// Condition sets or deletes a condition of another controller on the operator CR.
type Condition struct {
	Type, Status, Reason, Message string
	// Manager is the field manager; empty: one that is nobody else's.
	Manager string
	Delete  bool
	// Size is how many bytes Message is filled up to.
	Size int
}

// Verb implements Action.
func (*Condition) Verb() Verb { return VerbCondition }

func (c *Condition) fields() []field {
	status := keywordField(&c.Status, "True", "False", "Unknown")
	rule := status.check
	status.check = func(v *validation, at place, name string) {
		if !c.Delete && c.Status != "" {
			rule(v, at, name)
		}
	}
	return []field{required("type", textField(&c.Type)), optional("status", status), optional("reason", textField(&c.Reason)), optional("message", textField(&c.Message)),
		optional("size", sizeField(&c.Size)).doc("bytes that the message is filled up to"),
		optional("manager", textField(&c.Manager)), optional("delete", boolField(&c.Delete))}
}

// Text is the message.
func (c *Condition) Text() string { return filled(c.Message, c.Size) }

// Describe implements Action.
func (c *Condition) Describe() string { return string(VerbCondition) + parameters(c) }

func (c *Condition) check(v *validation, at place) {
	if !kubeForm.MatchString(c.Type) {
		v.add(at.at("type"), "type is %s, expected the type of a condition such as NodeControllerDegraded", quote(c.Type))
	}
	if n := len(c.Manager); n > contract.MaxFieldManagerBytes {
		v.add(at.at("manager"), "manager has %d bytes, expected at most %d", n, contract.MaxFieldManagerBytes)
	}
	if !c.Delete {
		if c.Status == "" {
			v.add(at, "condition without a status, expected True, False or Unknown")
		}
		return
	}
	for _, f := range c.fields() {
		switch f.name {
		case "status", "reason", "message", "size":
			if f.get() != nil {
				v.add(at.at(f.name), "%s of a condition that is deleted, expected none", f.name)
			}
		}
	}
}
