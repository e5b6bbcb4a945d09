/* SPDX-License-Identifier: Apache-2.0 */
/* chill() waits, and tracing goes on. */
/* flags: -q -w */
BEGIN
{
	this->t = timestamp;
	chill(100000);
	printf("done\n");
	exit(0);
}
/* output:
done

*/
