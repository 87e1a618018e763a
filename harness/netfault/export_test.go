package netfault

// Fault is the one in force.
func (l *Link) Fault() Fault {
	f, _ := l.control.get()
	return f
}

// Connections is how many connections are established through the link.
func (l *Link) Connections() int {
	l.control.mu.Lock()
	defer l.control.mu.Unlock()
	return len(l.control.ends)
}

// Members are the names in the order of the turns.
func (lb *LoadBalancer) Members() (names []string) {
	lb.mu.Lock()
	defer lb.mu.Unlock()
	for _, m := range lb.members {
		names = append(names, m.name)
	}
	return names
}
