"""Which tests are ``slow``: rows and cases whose longer half a change seldom needs, run by ``.ci/run`` all the same.

What one of them tries, a shorter one beside it tries too: another dimension, another scheme, another scene.
"""

FIRST = ("test_window.py", "test_vulkan.py", "test_backends.py", "test_cli.py", "test_channel.py", "test_demos.py")
"""Files that take longest, the longest one first."""

SLOW = (
    "test_vulkan.py::test_vulkan_passes_the_marked_tests[advection and pressure]",
    "test_vulkan.py::test_vulkan_passes_the_marked_tests[steps]",
    "test_vulkan.py::test_vulkan_passes_the_marked_tests[pictures of steps]",
    "test_backends.py::test_vulkan_and_cpu_agree_after_one_step[3D]",
    "test_backends.py::test_a_guest_may_have_started_taichi_otherwise[3D",
    "test_backends.py::test_solids_and_every_view_work_and_print_nothing[2-debug",
    "test_backends.py::test_solids_and_every_view_work_and_print_nothing[3",
    "validation/test_heated_cavity.py::test_as_much_heat_goes_through_as_the_bench_mark_says[64-1e4]",
    "test_loads.py::test_a_steady_drag_is_the_momentum_that_the_stream_loses",
    "test_vulkan.py::test_vulkan_passes_the_marked_tests[liquids]",
    "test_checkpoints.py::test_a_flow_goes_on_bit_for_bit[collocated",
    "test_checkpoints.py::test_a_flow_goes_on_bit_for_bit[fire",
    "test_checkpoints.py::test_a_flow_goes_on_bit_for_bit[poured",
    "test_checkpoints.py::test_a_flow_goes_on_bit_for_bit[water in 3D",
    "test_checkpoints.py::test_what_ends_a_run_leaves_a_checkpoint[killed",
    "test_kills.py::test_a_run_that_is_killed_ends_where_one_that_nobody_kills_does[obstacles",
    "test_kills.py::test_a_run_that_is_killed_ends_where_one_that_nobody_kills_does[fire",
    "test_kills.py::test_a_run_that_is_killed_ends_where_one_that_nobody_kills_does[dam",
    "test_soak.py::test_a_flow_with_all_there_is_goes_on[2000",
    "test_soak.py::test_a_session_goes_from_preset_to_preset[100",
    *(
        f"test_sabotage.py::test_what_is_broken_is_noticed[{name}"
        for name in (
            "a checkpoint",
            "a file",
            "a wall",
            "a watchdog",
            "no solids",
            "no projection",
            "particles",
            "red",
            "smoke",
            "the direction",
            "the sign",
            "torque",
        )
    ),
    # In the window; the session and the panel have theirs without one.
    "test_window.py::test_every_preset_by_its_button[all]",
    "test_window.py::test_every_view_of_3d_by_its_button",
    "test_window.py::test_both_grids_side_by_side[keys]",
    "test_window.py::test_a_recording_lasts_as_long_as_it_took_and_plays[keys]",
    "test_window.py::test_a_slider_dragged_by_its_pixels_changes_the_parameter_and_the_fluid",
    "test_window.py::test_the_keyboard_belongs_to_a_slider_until_the_number_is_done",
    "test_window.py::test_a_folded_panel_leaves_its_place_once_that_is_known",
    "test_window.py::test_a_panel_dragged_away_takes_its_place_along[line of text]",
    "test_window.py::test_a_panel_dragged_away_takes_its_place_along[empty place]",
    "test_window.py::test_a_window_of_another_size",
    "test_window.py::test_a_slow_step_leaves_frames_between_its_parts",
    "test_window.py::test_arrow_keys_with_shift_and_ctrl_and_the_way_back",
    "test_window.py::test_the_end_leaves_a_whole_recording[by_its_button]",
    "test_window.py::test_the_end_leaves_a_whole_recording[by_the_keyboard_of_the_terminal]",
    "test_window.py::test_the_command_opens_a_window_and_says_what_it_wrote[vulkan]",
    "test_rocket.py::test_keys_fly_the_ship_in_its_window",
    # In processes of their own.
    "test_cli.py::test_what_breaks_it_off_keeps_what_was_recorded[frames",
    "test_cli.py::test_with_out_no_display_is_looked_for",
    "test_cli.py::test_without_a_display_it_says_so_in_one_sentence_and_records[:987",
    "test_bench.py::test_what_is_finished_is_kept_when_it_is_killed[15",
    "test_kernels.py::test_with_many_threads_too",
    "test_peers.py::test_two_peers_take_turns_with_ours",
    "test_readme.py::test_a_command_for_vulkan_runs_as_printed",
    *(
        f"test_demos.py::test_demo_runs_and_its_check_passes[{name}]"
        for name in (
            "ash3d",
            "campfire",
            "dye2d",
            "embers",
            "explosion",
            "fire",
            "godot2d",
            "grids",
            "ink",
            "jets",
            "mac_smoke",
            "obstacles",
            "rocket",
            "stable_fluids",
        )
    ),
    # Longer flows.
    "test_conservation.py::test_two_thousand_steps_keep_them",
    "validation/test_cylinder.py",
    "test_friction.py::test_whole_steps_keep_the_flow_between_cylinders_to_second_order",
    *(
        f"test_validation.py::test_a_case_finds_what_it_found[{name}"
        for name in (
            "taylor-green-splitting",
            "heated-1e4",
            "cavity-1000",
            "onset",
            "cylinder-20",
            "vortices-3d",
        )
    ),
    "validation/test_channel.py::test_the_lid_driven_cavity_at_re_100",
    "validation/test_channel.py::test_poiseuille_between_walls_of_solids_is_that_between_sides_of_the_box[shape1",
    "validation/test_channel.py::test_a_heavy_fluid_stays_at_rest[3D",
    "validation/test_channel.py::test_layers_that_are_warmer_above_stay_at_rest[3D",
    "validation/test_channel.py::test_what_flows_in_flows_through_every_section[3D",
    "validation/test_curved_wall.py::test_open_parts_make_potential_flow_around_a_curved_wall_second_order[3D",
    "validation/test_curved_wall.py::test_a_wheel_that_turns_about_its_axis_moves_nothing[3D",
    "validation/test_curved_wall.py::test_closed_faces_carry_the_velocity_of_their_solid_after_every_step[3D",
    "validation/test_curved_wall.py::test_there_is_no_smoke_inside_solids_after_any_step[3D",
    "validation/test_curved_wall.py::test_what_solids_uncover_is_like_what_surrounds_it[3D",
    "validation/test_curved_wall.py::test_smoke_does_not_leak_through_a_wall_one_cell_thin[3D",
    "validation/test_curved_wall.py::test_a_solid_that_moves_through_smoke_keeps_most_of_it[3D",
    "test_collocated.py::test_a_uniform_flow_passes_from_an_inflow_to_an_open_side[3D]",
    "test_collocated.py::test_a_plume_rises_on_both_grids_alike[3D]",
    "test_combustion.py::test_a_scene_in_which_nothing_burns_is_the_scene_without_the_table[3D]",
    "test_comparison.py::test_each_half_is_the_picture_of_its_flow[3D",
    "test_live_engine.py::test_a_step_in_parts_is_the_same_step[3D]",
    "test_mesh.py::test_a_scene_names_a_file_beside_it[stl]",
    "test_pockets.py::test_spheres_are_solved_threefold_an_iteration[64-64-64]",
    "test_resample.py::test_the_step_that_follows_is_a_step_like_any[3D",
    "test_seams.py::test_two_steps_of_everything_are_moved_around_a_periodic_box[3-all around]",
    "test_seams.py::test_two_steps_of_everything_are_moved_around_a_periodic_box[2-open above, a ball crosses]",
    "test_sides.py::test_a_hot_column_between_open_sides_does_not_tear_itself_apart[collocated]",
    "test_sides.py::test_a_uniform_periodic_flow_carries_itself_unchanged[3D",
    "test_simulation.py::test_a_smaller_tolerance_is_no_danger",
    "test_solver_sides.py::test_multigrid_takes_the_same_few_iterations_at_every_size",
    "test_spectral.py::test_a_recorded_run_says_what_stands_in_and_why",
)
"""Where their names begin."""
