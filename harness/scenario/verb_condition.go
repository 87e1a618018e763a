package scenario

import "github.com/kmsharness/kmsharness/contract"

// Condition sets or deletes a condition of another controller on the operator CR.
type Condition struct {
	Type    string `yaml:"type" required:"true" pattern:"^[A-Za-z]([A-Za-z0-9_,:.-]{0,252}[A-Za-z0-9_])?$" expected:"the type of a condition such as NodeControllerDegraded"`
	Status  string `yaml:"status,omitempty" enum:"True,False,Unknown" without:"delete=true"`
	Reason  string `yaml:"reason,omitempty" without:"delete=true"`
	Message string `yaml:"message,omitempty" without:"delete=true"`
	Size    int    `yaml:"size,omitempty" minimum:"0" maximum:"2097152" without:"delete=true" description:"bytes that the message is filled up to"`
	// Manager is the field manager; empty: one that is nobody else's.
	Manager string `yaml:"manager,omitempty"`
	Delete  bool   `yaml:"delete,omitempty"`
}

func (c *Condition) Text() string { return filled(c.Message, c.Size) }

func (*Condition) About() string {
	return "sets or deletes somebody else's condition on the operator CR"
}

func (c *Condition) Validate(v Validation) {
	if n := len(c.Manager); n > contract.MaxFieldManagerBytes {
		v.Add("manager", "manager has %d bytes, expected at most %d", n, contract.MaxFieldManagerBytes)
	}
	if !c.Delete && c.Status == "" {
		v.Add("", "condition without a status, expected True, False or Unknown")
	}
}
