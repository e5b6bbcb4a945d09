/* SPDX-License-Identifier: Apache-2.0 */
/* root is the directory that the process takes for "/"; names below it begin there. */
/* flags: -q -c "chroot /usr /bin/true" */
syscall::exit_group:entry
/execname == "true" && progenyof($target)/
{
	printf("%s %s\n", root, cwd);
}
/* output:
/usr /

*/
