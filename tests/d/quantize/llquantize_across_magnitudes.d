/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: the width grows with the power. */
BEGIN
{
	@ = llquantize(8, 10, 0, 3, 10);
	@ = llquantize(25, 10, 0, 3, 10);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
               7 |                                         0        
               8 |@@@@@@@@@@@@@@@@@@@@                     1        
               9 |                                         0        
              10 |                                         0        
              20 |@@@@@@@@@@@@@@@@@@@@                     1        
              30 |                                         0        

*/
