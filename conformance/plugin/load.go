package plugin

func load() []Check {
	return []Check{
		statusPolled(), sequential(), noMixUp(), concurrent(few()), concurrent(many()), concurrent(most()), keyIDUnderLoad(), statusUnderLoad(), cancelledCalls(),
		expiredDeadline(), shortDeadlines(), slowReader(), churn(), openConnections(), closedConnections(), descriptors(), threads(), memory(),
	}
}
