/* SPDX-License-Identifier: Apache-2.0 */
/* stop() stops the process; kill lets it go on. */
/* flags: -q -w -c /bin/true */
syscall::exit_group:entry
/pid == $target/
{
	stop();
	system("kill -CONT %d; echo continued", pid);
}
/* output:
continued

*/
