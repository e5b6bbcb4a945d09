/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: the last label is >= the end of the range. */
BEGIN
{
	@ = llquantize(5000, 10, 0, 2, 10);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
             900 |                                         0        
         >= 1000 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        

*/
