package sim

import "time"

// defaultCPUs is what an API server has where the cost of an apply was measured.
const defaultCPUs = 2

// processor is the CPU of an API server. What has to be worked out waits its turn: one after the other on each core.
type processor struct {
	s     *server
	cores int // 0: work takes no time
	busy  int
	queue []work
}

type work struct {
	cost time.Duration
	then func()
}

// do calls then when the work is done.
func (c *processor) do(cost time.Duration, then func()) {
	if c.cores == 0 {
		then()
		return
	}
	c.queue = append(c.queue, work{cost, then})
	c.next()
}

func (c *processor) next() {
	if c.busy == c.cores || len(c.queue) == 0 {
		return
	}
	w := c.queue[0]
	c.queue = c.queue[1:]
	c.busy++
	c.s.after(w.cost, func() {
		c.busy--
		w.then()
		c.next()
	})
}
