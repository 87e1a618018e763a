// Package supervisor is process 1 of a container under test: it runs one program and lets the harness stop, kill, pause, resume
// and start it.
//
// A kubelet restarts what ends, at once the first time and later with growing delays, so on its own a stopped program
// neither stays down nor comes back when it is told to. Under the supervisor the container goes on while the program is down, and
// the words of a scenario mean what they mean on the local backend; the same package (harness/process) carries them out.
// What nobody asked for is passed on: a program that ends by itself takes its container with it, with the same exit code.
//
// What lives here: the program's life, the control API and its client, the journal of changes and stalls, the wait for a URL, the
// collection of orphans. What does not: what the program is, how the supervisor comes into the container (operator/sidecar),
// and the reading of the journal (harness/record/supervisor).
//
// Stop and kill outlive the container. A marker beside the control socket says that the program is down on request, so a
// kubelet that restarts the container meanwhile, because a liveness probe failed for instance, brings back a supervisor that
// still holds. A pause does not: a paused program that its container is told to end resumes and ends.
//
// The journal has every change that the supervisor saw. It does not see its own end by SIGKILL, which takes the program with it. It also has
// every time in which the supervisor itself was given no processor time (harness/starvation): the program in the same container was not either.
// A paused program is no stall, since the supervisor goes on; a container that is frozen with all that is in it is one, and the journal cannot
// tell it from a busy machine. Who froze it is told elsewhere.
package supervisor
