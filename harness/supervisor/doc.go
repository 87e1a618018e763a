// Package supervisor is process 1 of a container under test: it runs one program, and the harness can stop, kill,
// pause, resume and start that program through it.
//
// A kubelet restarts a program that ends, at once the first time and later with growing delays. On its own, a stopped
// program would neither stay down nor start on request. Under the supervisor the container continues while the program
// is down, and the verbs of a scenario have the same meaning as on the local backend; the same package
// (harness/process) executes them. An end without a request is passed on: a program that ends by itself ends its
// container with the same exit code.
//
// The package has the processes of the program, the control API and its client, the journal of changes, and the
// collection of orphans. Its flags name the program; operator/sidecar adds the supervisor to a container.
//
// The program must not excuse itself: by a line in the journal, or by a request to the control API. With --user it is another user than the supervisor,
// and neither its user nor its group can enter the folders of the two.
//
// Stop and kill outlive the container. A marker beside the control socket records that the program is down on request.
// If a kubelet restarts the container meanwhile, for instance after a failed liveness probe, the new supervisor keeps
// the program down. A pause does not outlive it: when its container is told to end, a paused program resumes and ends.
//
// The journal has every change that the supervisor observes. It cannot observe its own end by SIGKILL, which also ends
// the program.
package supervisor
