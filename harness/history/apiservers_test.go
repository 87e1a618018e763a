package history

import (
	"reflect"
	"testing"
	"time"
)

func furtherEvents() []Event {
	log := NewLog(nil)
	x := func(p any) Of { return Of{APIServer: OpenShiftAPIServer, Payload: p} }
	for i, p := range []any{
		&Run{Schema: Schema, Operator: "kubeapiservers", ClusterOperator: "kube-apiserver", APIServers: []AggregatedAPIServer{
			{Name: OpenShiftAPIServer, Operator: "openshiftapiservers", ClusterOperator: "openshift-apiserver", Connectivity: "service"}}},
		&Process{Role: RoleAPIServer, Node: "cp-1", State: ProcessReady},
		x(&Process{Role: RoleAPIServer, APIServer: OpenShiftAPIServer, Node: "cp-1", State: ProcessReady}),
		&Call{Node: "cp-1", KeyID: "1", Method: "Status"},
		x(&Call{Node: "cp-1", KeyID: "1", Method: "Status"}),
		&Object{Resource: "kubeapiservers.operator.openshift.io", Name: "cluster"},
		&Object{Resource: "openshiftapiservers.operator.openshift.io", Name: "cluster"},
		&Object{Resource: "clusteroperators.config.openshift.io", Name: "openshift-apiserver"},
		&Request{Resource: "openshiftapiservers.operator.openshift.io", Name: "cluster"},
		&Request{Resource: "nodes"},
		&Link{From: RoleReporter, To: RoleAPIServer},
		&Link{From: RoleAPIServer, To: RoleEtcd},
		x(&Action{ID: "steps[0]", Verb: "inject"}),
		&Action{ID: "steps[1]", Verb: "rotate"},
		&End{Complete: true},
		&Container{Node: "cp-1", Name: "kube-apiserver", State: ContainerExited},
		&Container{Node: "cp-1", State: PodRevised, Revision: 2},
		&Container{Node: "cp-1", State: PodRefused},
		x(&Container{Node: "cp-1", State: PodRevised, Revision: 3}),
	} {
		log.Record(start.Add(time.Duration(i)*time.Second), "test", p)
	}
	return log.Events()
}

func seqs(events []Event) (out []int64) {
	for _, e := range events {
		out = append(out, e.Seq)
	}
	return out
}

// Each API server's history has what is its own, as if there were no other, and what all share.
func TestAbout(t *testing.T) {
	all := furtherEvents()
	main, aggregated := About(all, ""), About(all, OpenShiftAPIServer)
	if want := []int64{1, 2, 4, 6, 10, 11, 12, 13, 14, 15, 16, 17, 18}; !reflect.DeepEqual(seqs(main), want) {
		t.Errorf("kube-apiserver's are %v, expected %v", seqs(main), want)
	}
	if want := []int64{1, 2, 3, 5, 7, 8, 9, 10, 12, 13, 14, 15, 16, 19}; !reflect.DeepEqual(seqs(aggregated), want) {
		t.Errorf("openshift-apiserver's are %v, expected %v", seqs(aggregated), want)
	}
	if r := aggregated[0].Run; r.Operator != "openshiftapiservers" || r.Connectivity != "service" || len(r.APIServers) != 0 {
		t.Errorf("heading %+v", r)
	}
	if p := aggregated[2].Process; p.Role != RoleAggregatedAPIServer || p.APIServer != "" {
		t.Errorf("its own process is %+v", p)
	}
	if main[7].APIServer == "" || aggregated[9].APIServer != "" {
		t.Error("an action is not told from those on others")
	}
	if all[2].Process.Role != RoleAPIServer || all[4].APIServer == "" {
		t.Error("the history itself was changed")
	}
	if About(all, OAuthAPIServer) != nil {
		t.Error("one that was not there has a history")
	}
}

// A history of kube-apiserver alone is not copied: there are many, and long ones.
func TestAboutOneIsTheHistory(t *testing.T) {
	events := []Event{{Kind: KindRun, Run: &Run{}}, {Kind: KindEnd, End: &End{}}}
	if got := About(events, ""); &got[0] != &events[0] {
		t.Error("it was copied")
	}
}
