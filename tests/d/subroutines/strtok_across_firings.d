/* SPDX-License-Identifier: Apache-2.0 */
/* strtok(NULL) goes on where the thread's last strtok() was, also in another probe. */
/* flags: -q -c "/bin/dd if=/dev/zero of=/dev/null bs=1 count=3 status=none" */
BEGIN
{
	printf("%s\n", strtok("other,thread", ","));
}

syscall::read:entry
/pid == $target && arg0 == 0 && arg2 == 1 && !n++/
{
	printf("%s\n", strtok("one,two,three", ","));
}

syscall::write:entry
/pid == $target && arg0 == 1 && n/
{
	this->token = strtok(NULL, ",");
	printf("%s\n", this->token == NULL ? "none" : this->token);
}
/* output:
other
one
two
three
none

*/
