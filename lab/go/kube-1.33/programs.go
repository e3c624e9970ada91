// Replaces kube/programs.go in a build of Kubernetes 1.33.
package main

import (
	"github.com/spf13/cobra"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func newKubelet() *cobra.Command { return kubelet.NewKubeletCommand() }

func setKubectlVerbosity() {}
