TESTS += $(addprefix templates/, \
	cases_test \
	)
