package main

import (
	"fmt"
	"os"
	_ "time/tzdata" // time zones of CronJobs, also where the machine has none

	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl's auth plugins
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics of the components
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// applets are the programs linked into this binary beside devcluster itself.
// Each runs in a process of its own, as `devcluster component NAME FLAGS...`,
// and sees the command line it would see as a binary of its own.
var applets = map[string]func(){
	"etcd": func() { etcdmain.Main(os.Args) },
	"kube-apiserver": func() {
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	},
	"kube-controller-manager": func() {
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	},
	"kube-scheduler": func() {
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	},
	"kubectl": runKubectl,
}

// runApplet replaces the rest of the process by the named applet.
func runApplet(name string, args []string) {
	run, ok := applets[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "devcluster: there is no component %q\n", name)
		os.Exit(2)
	}
	// The name ends up in usage texts and in the client's user agent.
	os.Args = append([]string{name}, args...)
	run()
	os.Exit(0)
}

func runKubectl() {
	logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)) //nolint:errcheck
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
}
