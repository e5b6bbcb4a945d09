/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 6 and 23: a heading, rows with their heads, and values in columns by their types. */
/* flags: -x quiet=off */
/* processor: 0 */
/* stderr: matched 6 probes */
BEGIN
{
	trace("text");
}
BEGIN
{
	trace((long)-1);
	trace(-1);
	trace((short)-1);
	trace((char)-1);
}
BEGIN
{
	trace((unsigned long)1);
	trace((unsigned int)1);
	trace((unsigned short)1);
	trace((unsigned char)1);
}
BEGIN
{
}
BEGIN
{
	@ = count();
}
BEGIN
{
	printf("%d", 7);
	exit(0);
}
/* output:
CPU     ID                    FUNCTION:NAME
  0      1                           :BEGIN   text                             
  0      1                           :BEGIN                   -1         -1    -1  -1
  0      1                           :BEGIN                     1          1     1   1
  0      1                           :BEGIN 
  0      1                           :BEGIN 7

                1
*/
