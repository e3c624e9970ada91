package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// The kubelet sets up its own signal handling and panics when it is given another one.
func newKubelet() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }

func setKubectlVerbosity() {
	logs.GlogSetter(cmd.GetLogVerbosity(os.Args)) //nolint:errcheck // upstream's main ignores it, too
}
