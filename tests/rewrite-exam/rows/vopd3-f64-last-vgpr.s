	v_dual_add_f64 v[10:11], v[4:5], v[8:9] :: v_dual_max_num_f32 v1, v2, v127 //fixed: v_dual_add_f64 v[10:11], v[4:5], v[8:9] :: v_dual_max_num_f32 v1, v2, v126
