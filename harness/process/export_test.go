package process

// LogFile is that of the specification.
func (p *Process) LogFile() string { return p.spec.LogFile }

func (p *Process) Name() string { return p.spec.Name }
