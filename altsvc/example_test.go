package altsvc_test

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/altsvc"
)

// Wrap a configuration before clients are made of it.
func ExampleWrap() {
	config := &rest.Config{Host: "https://api-int.example:6443", BearerToken: "…"}
	alternatives, err := altsvc.Wrap(config, altsvc.Options{
		Static: []string{"10.0.0.2", "10.0.0.3", "10.0.0.4"}, // optional: also without the load balancer at the start
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer alternatives.Close()
	if _, err := kubernetes.NewForConfig(config); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("in use: %q\n", alternatives.Current())
	// Output: in use: ""
}

// Parse reads the field that an API server sends.
func ExampleParse() {
	field, err := altsvc.Parse(`h2="10.0.0.2:6443"; ma=70, h2="[fd00::3]:6443"; ma=70`)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range field.Alternatives {
		fmt.Println(a.Protocol, a.Host, a.Port, a.MaxAge)
	}
	// Output:
	// h2 10.0.0.2 6443 1m10s
	// h2 fd00::3 6443 1m10s
}
