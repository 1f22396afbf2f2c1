# What roost-ipam does, and roost in its place where both lie in one folder.
SRCS += $(addprefix ipam/, \
	plugin_ask.c \
	plugin_add.c \
	plugin_del.c \
	plugin_check.c \
	)

PLUGINS += roost-ipam
PROGRAM_SRCS.roost-ipam := ipam/main.c
