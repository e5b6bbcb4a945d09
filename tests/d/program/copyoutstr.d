/* SPDX-License-Identifier: Apache-2.0 */
/* copyoutstr() writes a string to the memory of the process. */
/* flags: -q -w -c "/bin/echo hello" */
/* unless: this kernel lets no program write */
syscall::write:entry
/pid == $target && arg0 == 1/
{
	copyoutstr("HELLO", arg1, 5);
}
/* output:
HELLO

*/
