include controller/kube.mk
