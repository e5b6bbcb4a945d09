/* SPDX-License-Identifier: Apache-2.0 */
/* copyinstr(address, 0) is the empty string, whatever was in its room before. */
/* flags: -q -c '/bin/cat /dev/null' */
syscall::openat:entry
/pid == $target && copyinstr(arg1) == "/dev/null"/
{
	this->a = copyinstr(arg1);
	printf("<%s> <%s>\n", copyinstr(arg1), copyinstr(arg1, 0));
}
/* output:
</dev/null> <>

*/
