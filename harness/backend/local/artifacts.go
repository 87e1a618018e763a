package local

import "context"

// Collect implements live.Plane: what this plane has beyond objects are logs, and those are always kept.
func (p *plane) Collect(context.Context, string, func(string)) error { return nil }
