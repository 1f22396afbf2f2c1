PLUGINS += roost-ipam
PROGRAM_SRCS.roost-ipam := \
	ipam/main.c \
	ipam/plugin_ask.c \
	ipam/plugin_add.c \
	ipam/plugin_del.c \
	ipam/plugin_check.c
