/* SPDX-License-Identifier: Apache-2.0 */
/* fds[] describes the files of the process. */
/* flags: -q -c "/bin/grep -q a_name_that_no_machine_has /etc/hostname" */
syscall::read:entry
/pid == $target && fds[arg0].fi_name == "hostname" && !n++/
{
	printf("%s %s %d\n", fds[arg0].fi_pathname, fds[arg0].fi_dirname, fds[arg0].fi_offset);
	exit(0);
}
/* output:
/etc/hostname /etc 0

*/
