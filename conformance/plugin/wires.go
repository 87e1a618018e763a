package plugin

// transport has the checks on which those of Status depend.
func transport() []Check { return []Check{connects(), authorityAccepted()} }

// wires has the checks of connections, and of the protocol below the methods. They need a plugin that answers Status.
func wires() []Check {
	return []Check{
		secondConnection(), statusSameEverywhere(), socketPermissions(), otherAuthority(), idleConnection(), garbage(), httpRequest(), halfPreface(), halfFrame(), abandonedRequest(),
		droppedConnection(), ping(), pingsWithCalls(), unknownMethod(), unknownService(), unknownFields(), traceMetadata(), largeMetadata(), compressed(),
		bigRequest(),
	}
}
