package netfault

// Connections is how many connections are established through the link.
func (l *Link) Connections() int {
	l.to.control.mu.Lock()
	defer l.to.control.mu.Unlock()
	return len(l.to.control.ends)
}

// Fault in force.
func (l *Link) Fault() Fault {
	f, _ := l.to.control.get()
	return f
}

// Members are the names in the order of the turns.
func (lb *LoadBalancer) Members() (names []string) {
	for _, m := range lb.members {
		names = append(names, m.name)
	}
	return names
}
