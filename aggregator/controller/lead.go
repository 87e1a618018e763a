package controller

import "context"

// lead works while it holds the lease, and stands by otherwise, until ctx ends.
func (c *Controller) lead(ctx context.Context) error {
	return c.Election.Lead(ctx, c.REST, c.Log, func(leading context.Context) error {
		c.metrics.leader.Set(1)
		defer c.metrics.leader.Set(0)
		c.work(leading)
		return nil
	})
}
